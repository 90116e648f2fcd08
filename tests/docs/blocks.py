"""The blocks of Python in README and docs, and how they are run: one statement after the other, as in a shell."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from types import CodeType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+) -->\n+)?(?P<indent> *)```python\n(?P<code>.*?)^ *```", re.S | re.M
)


@dataclass(frozen=True)
class Block:
    """A block of a page, and why it is not run, if it is not."""

    page: Path
    line: int
    code: str
    reason: str | None

    def run(self, names: dict[str, Any], runner: asyncio.Runner) -> Iterator[None]:
        """Execute the block with *names*, and leave there what it defines. Yield after each statement."""
        for code in self._statements():
            made = eval(code, names)
            if inspect.iscoroutine(made):
                runner.run(made)
            yield

    def _statements(self) -> Iterator[CodeType]:
        tree = ast.parse(self.code)
        ast.increment_lineno(tree, self.line)
        for statement in tree.body:
            yield compile(ast.Module([statement], []), str(self.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def blocks(page: Path) -> list[Block]:
    """Return the blocks of Python in *page*."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start("code")), dedent(found["code"]), found["reason"])
        for found in _BLOCK.finditer(text)
    ]
