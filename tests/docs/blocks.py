"""The blocks of Python in README and docs, and how they are run: one statement after the other, as in a shell."""

import ast
import asyncio
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from types import CodeType, UnionType
from typing import Any, get_args, get_origin, is_typeddict

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: The page on which each example catches errors that it raises.
ERRORS = ROOT / "docs" / "examples" / "exceptions.md"

_BLOCK = re.compile(
    r"(?:<!-- not (?P<verb>run|raised): (?P<reason>[^\n]+) -->\n+)?(?P<indent> *)```python\n(?P<code>.*?)^ *```",
    re.S | re.M,
)


@dataclass(frozen=True)
class Block:
    """A block of a page, and why it is not run, or why the errors that it catches are not raised."""

    page: Path
    line: int
    code: str
    reason: str | None
    calm: str | None

    def run(self, names: dict[str, Any], runner: asyncio.Runner) -> Iterator[None]:
        """Execute the block with *names*, and leave there what it defines. Yield after each statement."""
        tree = ast.parse(self.code)
        if self.page == ERRORS and not self.calm:
            tree = _MustRaise().visit(tree)
        ast.increment_lineno(tree, self.line)
        for statement in tree.body:
            made = eval(self._compiled(statement), names)
            if inspect.iscoroutine(made):
                runner.run(made)
            if isinstance(statement, ast.AnnAssign):
                self._check_annotation(statement, names)
            yield

    def _compiled(self, statement: ast.stmt) -> CodeType:
        module = ast.Module([statement], [])
        return compile(module, str(self.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    def _check_annotation(self, statement: ast.AnnAssign, names: dict[str, Any]) -> None:
        """Raise TypeError if a value is not of the class that the example says."""
        value = eval(ast.unparse(statement.target), names)
        annotation = eval(ast.unparse(statement.annotation), names)
        kind = annotation if isinstance(annotation, type | UnionType) else get_origin(annotation)
        if kind is list and value:
            value, kind = value[0], get_args(annotation)[0]
        if not isinstance(kind, type | UnionType) or is_typeddict(kind) or _is_protocol(kind):
            return
        if not isinstance(value, kind):
            raise TypeError(
                f"{self.page}:{statement.lineno}: {value!r} is not {ast.unparse(statement.annotation)}"
            )


class _MustRaise(ast.NodeTransformer):
    """Lets a try end with an error if nothing was raised in it."""

    def visit_Try(self, node: ast.Try) -> ast.Try:
        caught = ", ".join(ast.unparse(each.type) for each in node.handlers if each.type)
        node.orelse = ast.parse(f"raise AssertionError({f'nothing raises {caught}'!r})").body
        ast.fix_missing_locations(node)
        return node


def _is_protocol(kind: Any) -> bool:
    return any(getattr(each, "_is_protocol", False) for each in get_args(kind) or (kind,))


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("code")),
            dedent(found["code"]),
            reason=found["reason"] if found["verb"] == "run" else None,
            calm=found["reason"] if found["verb"] == "raised" else None,
        )
        for found in _BLOCK.finditer(text)
    ]
