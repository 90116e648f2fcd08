"""The examples of README and docs that are neither Python nor shell: they can be read, and name what there is."""

from __future__ import annotations

import json
import re
from textwrap import dedent

import pytest
import yaml
from django.contrib.staticfiles import finders
from django.template import Context, Template
from redis import Redis

from tests.docs.blocks import PAGES, ROOT

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^ *```", re.S | re.M)
#: Languages whose blocks are checked here, and elsewhere.
HERE, ELSEWHERE = {"css", "html", "json", "yaml"}, {"python", "sh", "text"}


def blocks(language: str) -> list[pytest.ParameterSet]:
    """Return the text of each block in this language, with its place as an id."""
    made = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in _BLOCK.finditer(text):
            if found["language"] == language:
                place = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}"
                made.append(pytest.param(dedent(found["text"]), id=place))
    return made


def test_each_block_is_in_a_language_that_some_test_reads() -> None:
    pages = [page.read_text(encoding="utf-8") for page in PAGES]

    assert {found["language"] for text in pages for found in _BLOCK.finditer(text)} <= HERE | ELSEWHERE


@pytest.mark.parametrize("text", blocks("json"))
def test_an_example_of_json_can_be_read(text: str) -> None:
    assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_an_example_of_yaml_can_be_read(text: str) -> None:
    assert isinstance(yaml.safe_load(text), dict)


@pytest.mark.django_db
@pytest.mark.parametrize("text", blocks("html"))
def test_an_example_of_a_template_can_be_rendered_and_its_files_exist(text: str, redis: Redis) -> None:
    alone = re.sub(r"{% block extrahead %}|{{ block.super }}|{% endblock %}", "", text)
    page = Template(alone.replace("market.item", "db.ware")).render(Context({"pk": 1, "pks": [1, 2]}))

    assert "{%" not in page
    missing = [path for path in re.findall(r'(?:href|src)="/static/([^"]+)"', page) if not finders.find(path)]
    assert missing == []


@pytest.mark.parametrize("text", blocks("css"))
def test_an_example_of_css_sets_variables_that_there_are(text: str) -> None:
    used = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "components" / "static").rglob("*.css")
    )

    assert [name for name in re.findall(r"(--[\w-]+):", text) if f"var({name}" not in used] == []
