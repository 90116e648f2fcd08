"""Settings of Sphinx: the manual is the Markdown beside this file, and README is its first page."""

from __future__ import annotations

import builtins
import re
import sys
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import django
from django.conf import settings
from django.urls import include, path
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

settings.configure(
    SECRET_KEY="unused",
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "components",
    ],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
settings.ROOT_URLCONF = (path("", include("components.urls")),)  # media of widgets name addresses

project = "django-redis-components"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = project
html_static_path = ["images"]
html_show_copyright = False
exclude_patterns = ["_build", "examples"]  # the reference shows each example beside its name
myst_heading_anchors = 3  # as GitHub has them: a page can link to a heading
autodoc_member_order = "bysource"
autodoc_mock_imports = ["opentelemetry", "prometheus_client", "sentry_sdk"]  # of extras
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

README = ROOT / "README.md"
_NAMES = re.findall(r"^class (\w+)", (ROOT / "components" / "exceptions.py").read_text("utf-8"), re.MULTILINE)
ERROR = re.compile(rf"(?<![\w.`])({'|'.join(_NAMES)})(?![\w`])")
#: The examples of README and the manual, which tests run.
EXAMPLES = [
    dedent(block)
    for page in [README, *sorted((ROOT / "docs").rglob("*.md"))]
    for block in re.findall(r"^ *```python\n(.*?)^ *```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
]
LINK = r":exc:`~components.exceptions.\1`"


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    """Make README the first page, and let links and pictures lead where they are in the built pages."""
    if page == "index":
        source[0] = README.read_text("utf-8").replace("](docs/", "](") + source[0]
    text = re.sub(r'="(docs/)?images/', '="_static/', source[0]).replace("](../README.md", "](index.md")
    # Files of the repository that are no pages are named, not linked.
    above = r"\.\./" * (page.count("/") + 1)
    source[0] = re.sub(
        rf"\[([^]]*)\]\(((?:{above}|project/|CHANGELOG|LICENSE|NOTICE)[^)]*)\)", r"\1 (`\2`)", text
    )


def _format(app: Sphinx, what: str, name: str, it: Any, options: Any, lines: list[str]) -> None:
    """Make reStructuredText of a docstring, which is plain text: link errors, and show indented lines as code."""
    shown = list[str]()
    for before, line in pairwise(["", *lines]):
        if line.startswith(" ") and not before and not is_indented(shown):
            shown += ["::", ""]
        shown.append(line if line.startswith(" ") else ERROR.sub(LINK, line.replace("**", r"\*\*")))
    lines[:] = shown


def _add_example(app: Sphinx, what: str, name: str, it: Any, options: Any, lines: list[str]) -> None:
    """Show the example of a public name: of a class, that with most of its methods; of those, the shortest."""
    if what not in ("class", "function", "data", "exception"):
        return
    pattern = re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\b")
    methods = re.compile(rf"\.({'|'.join(_methods(it)) or '(?!)'})\b")
    found = [block for block in EXAMPLES if pattern.search(block)]
    if found := [block for block in found if name in block] or found:  # as settings name it
        best = min(found, key=lambda block: (-len({*methods.findall(block)}), len(block)))
        lines += ["", ".. rubric:: Example", "", ".. code-block:: python", ""]
        lines += [f"   {line}" for line in best.splitlines()]
        lines.append("")


def _methods(it: Any) -> list[str]:
    return [name for name in vars(it) if not name.startswith("_")] if isinstance(it, type) else []


def is_indented(lines: list[str]) -> bool:
    """Return whether the last line with text is indented."""
    return next((line.startswith(" ") for line in reversed(lines) if line), False)


def _leave_builtins(app: Sphinx, page: nodes.document) -> None:
    """Link no name of Python's own, such as bytes, to an attribute of this app with the same name."""
    for link in list(page.findall(addnodes.pending_xref)):
        if hasattr(builtins, link.get("reftarget", "")):
            link.replace_self(nodes.Text(link["reftarget"]))


def setup(app: Sphinx) -> None:
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _format)
    app.connect("autodoc-process-docstring", _add_example, priority=900)
    app.connect("doctree-read", _leave_builtins)
