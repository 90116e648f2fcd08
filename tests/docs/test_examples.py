"""
Each shell example of README and docs runs, in order, against a private server, or says why it does not.

manage.py is that of the shop, redis-cli asks the private server, redis-server starts another one beside it, and pip
installs nothing. Folders of a production machine are replaced by others.
"""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from django.contrib.staticfiles import finders
from django.template import Context, Template
from redis import Redis

from components.embedded import EmbeddedServer, find_server
from components.kit.rights import USERS
from tests.docs.blocks import PAGES, ROOT, blocks
from tests.support.geo import city, write_mmdb, write_old_csv

_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+) -->\n+)?(?P<indent> *)```sh\n(?P<code>.*?)^ *```", re.S | re.M
)
#: Folders that the examples name, and where they are in the test's own folder.
ELSEWHERE = {"/backup/": "backup/", "/var/lib/redis": "restored", "/var/log/nginx": "nginx"}
LINE = b"192.0.2.1 2011-10-10 13:55:36 achievement-762\n"


def shell_blocks(page: Path) -> Iterator[tuple[str | None, str]]:
    for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield found["reason"], dedent(found["code"])


WITH_SHELL = [page for page in PAGES if any(not reason for reason, _ in shell_blocks(page))]
#: Pages with many commands, each of which is a process.
LONG = ("logs", "commands")


class Shell:
    """A folder like that of a project, and the programs that the examples call."""

    def __init__(self, folder: Path, server: EmbeddedServer, client: str) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"},
            **{f"REDIS_PASSWORD_{user.upper()}": "secret" for user in (*USERS, "operator")},
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
            "SHOP_URL": server.url,
            "SHOP_FOLDER": str(folder),
            "REDISCLI_AUTH": "secret",
        }
        restored = folder / "restored.sock"
        socket = server.url.removeprefix("unix://").partition("?")[0]
        self.program("manage.py", f'exec {sys.executable} -m tests.docs.shop.manage "$@"')
        self.program("pip", 'test "$1" = install')
        self.program(
            "redis-cli",
            f'test -e {restored} && exec {client} -s {restored} "$@"; exec {client} -s {socket} "$@"',
        )
        self.program(
            "redis-server",
            f"mkdir restored && cp backup/*.rdb restored/dump.rdb\n"
            f'{find_server()} "$@" --port 0 --unixsocket {restored} --daemonize yes\n'
            f"until {client} -s {restored} ping | grep PONG; do :; done\n"
            f"env -u REDISCLI_AUTH {client} -s {restored} acl setuser operator on '>secret' '~*' '&*' +@all",
        )
        (folder / "backup").mkdir()

    def program(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, code: str) -> str:
        for there, here in ELSEWHERE.items():
            code = code.replace(there, here)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=self.folder, env=self.environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
        return done.stdout


def fill(folder: Path) -> None:
    """Make the files that the examples name."""
    write_mmdb(folder / "test.mmdb", {"192.0.2.0/24": city("US", "CA", "Mountain View")}).rename(
        folder / "GeoLite2-City.mmdb"
    )
    write_old_csv(folder, [("3221225984", "3221226239", "1")], [("1", "US", "CA", "Mountain View")])
    for name in ("logs", "old", "archive", "nginx", "game"):
        (folder / name).mkdir()
    for name in ("logs/a.gz", "archive.gz"):
        (folder / name).write_bytes(gzip.compress(LINE + name.encode()))
    for name in ("old/b.log", "access.log", "archive/c.log", "nginx/access.log"):
        (folder / name).write_bytes(LINE + name.encode() + b"\n")
    [events] = [
        block.code for block in blocks(ROOT / "docs" / "logs.md") if block.code.startswith("class Events")
    ]
    (folder / "game" / "logs.py").write_text(f"from collections import Counter\n\n{events}", encoding="utf-8")


@pytest.fixture
def shell(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    client = shutil.which("redis-cli") or shutil.which("valkey-cli") or pytest.skip("no redis-cli on PATH")
    folder = tmp_path / "project"
    folder.mkdir()
    fill(folder)
    with EmbeddedServer(tmp_path / "redis", server=request.config.getoption("--redis-server")) as server:
        with Redis.from_url(server.url) as operator:
            operator.execute_command("ACL", "SETUSER", "operator", "on", ">secret", "~*", "&*", "+@all")
        shell = Shell(folder, server, client)
        shell.run("manage.py importgeoip GeoLite2-City.mmdb")
        yield shell
        if (folder / "restored.sock").exists():
            [pid] = re.findall(r"process_id:(\d+)", shell.run("redis-cli --user operator info server"))
            os.kill(int(pid), signal.SIGKILL)  # nothing of it is to be kept


@pytest.mark.slow  # a process for each command
@pytest.mark.parametrize(
    "page",
    [pytest.param(each, marks=[pytest.mark.long] if each.stem in LONG else []) for each in WITH_SHELL],
    ids=[each.relative_to(ROOT).as_posix() for each in WITH_SHELL],
)
def test_the_shell_examples_of_a_page_run(page: Path, shell: Shell) -> None:
    for reason, code in shell_blocks(page):
        if not reason:
            shell.run(code)

    if page.stem == "backup":
        assert shell.run("redis-cli --user operator exists 'components:geo:{default}:current'") == "1\n"


def test_only_shell_examples_that_ci_does_are_not_run() -> None:
    not_run = [(page.name, reason) for page in PAGES for reason, _ in shell_blocks(page) if reason]

    assert {page for page, _reason in not_run} == {"README.md", "testing-this-project.md"}
    assert all("CI does" in reason for _page, reason in not_run), not_run


_OTHER = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^ *```", re.S | re.M)
LANGUAGES = {"css", "html", "json", "yaml", "python", "sh", "text"}


def in_language(language: str) -> list[pytest.ParameterSet]:
    """Return the text of each block in this language, with its place as an id."""
    made = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in _OTHER.finditer(text):
            if found["language"] == language:
                place = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}"
                made.append(pytest.param(dedent(found["text"]), id=place))
    return made


def test_each_block_is_in_a_language_that_some_test_reads() -> None:
    pages = [page.read_text(encoding="utf-8") for page in PAGES]

    assert {found["language"] for text in pages for found in _OTHER.finditer(text)} <= LANGUAGES


@pytest.mark.parametrize("text", in_language("json"))
def test_an_example_of_json_can_be_read(text: str) -> None:
    assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize("text", in_language("yaml"))
def test_an_example_of_yaml_can_be_read(text: str) -> None:
    assert isinstance(yaml.safe_load(text), dict)


@pytest.mark.django_db
@pytest.mark.parametrize("text", in_language("html"))
def test_an_example_of_a_template_can_be_rendered_and_its_files_exist(text: str, redis: Redis) -> None:
    alone = re.sub(r"{% block extrahead %}|{{ block.super }}|{% endblock %}", "", text)
    page = Template(alone.replace("market.item", "db.ware")).render(Context({"pk": 1, "pks": [1, 2]}))

    assert "{%" not in page
    missing = [path for path in re.findall(r'(?:href|src)="/static/([^"]+)"', page) if not finders.find(path)]
    assert missing == []


@pytest.mark.parametrize("text", in_language("css"))
def test_an_example_of_css_sets_variables_that_there_are(text: str) -> None:
    used = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "components" / "static").rglob("*.css")
    )

    assert [name for name in re.findall(r"(--[\w-]+):", text) if f"var({name}" not in used] == []


WITH_EXAMPLES = [page for page in PAGES if blocks(page)]


@pytest.mark.slow  # a process for each page
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_examples_of_a_page_run(page: Path, redis_server: EmbeddedServer, redis: Redis, tmp_path: Path):
    command = [sys.executable, "-m", "tests.docs.shop.run", page, redis_server.url, tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_few_examples_are_not_run():
    not_run = [block for page in PAGES for block in blocks(page) if block.reason]

    assert len(not_run) <= 4, [(block.page.name, block.line, block.reason) for block in not_run]
