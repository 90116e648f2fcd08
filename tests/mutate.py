"""
Make mutants of components/, in Python and Lua, and see which of them the quick tests of their folder catch.

    python -m tests.mutate draw SEED COUNT DRAWN  # from all folders alike
    python -m tests.mutate run DRAWN DONE         # in a clone of HEAD; goes on where DONE ends

A mutant is one line with one change: a condition is negated, a bound moved, a call or a result dropped, a key or a
unit swapped, a guard removed. The files hold a JSON object a line; in DONE, "caught" is the first test that fails.
"""

import ast
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
APP = ROOT / "components"
#: Seconds after which a mutant hangs.
HANGS = 600
BOTH = [("<", "<="), (">", ">="), (" and ", " or "), (" + ", " - ")]
SWAPS = {
    ".py": [
        *BOTH,
        ("==", "!="),
        (" in ", " not in "),
        (" is ", " is not "),
        ("min", "max"),
        ("True", "False"),
    ],
    ".lua": [
        *BOTH,
        ("==", "~="),
        ("math.min", "math.max"),
        ('"PX"', '"EX"'),
        ("true", "false"),
        ("1000", "1"),
    ],
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
#: The number of a line, the kind of change, and what the line becomes.
Change = tuple[int, str, str]


def of_lua(lines: list[str]) -> Iterator[Change]:
    keys = next((line.split()[2:] for line in lines if line.startswith("-- KEYS")), [])
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("--"):
            continue
        if match := re.search(r"\bif (.+) then\b", line):
            yield number, "condition", line.replace(match[1], f"not ({match[1]})", 1)
            yield number, "guard", line.replace(match[1], "false", 1)
        if match := re.fullmatch(r"(\s*)[\w.]+\(.*\)", line):
            yield number, "call", f"{match[1]}do end"
        if (match := re.search(r'redis\.call\("\w+", (\w+)', line)) and match[1] in keys:
            for key in {*keys} - {match[1]}:
                yield number, "key", f"{line[: match.start(1)]}{key}{line[match.end(1) :]}"
        yield from swapped(number, line, 0, len(line), ".lua")


def of_python(lines: list[str]) -> Iterator[Change]:
    for function in functions(lines):
        for node in (each for statement in function.body for each in ast.walk(statement)):
            yield from of_node(node, lines)


def of_node(node: Any, lines: list[str]) -> Iterator[Change]:
    has_test = isinstance(node, ast.If | ast.While | ast.IfExp)
    at = node.test if has_test else node
    if not hasattr(at, "lineno") or at.lineno != at.end_lineno:
        return
    number, line = at.lineno, lines[at.lineno - 1]
    before, code, after = (
        line[: at.col_offset],
        line[at.col_offset : at.end_col_offset],
        line[at.end_col_offset :],
    )
    if has_test:
        yield number, "condition", f"{before}not ({code}){after}"
        if isinstance(node, ast.If) and isinstance(node.body[0], ast.Return | ast.Raise | ast.Continue):
            yield number, "guard", f"{before}False{after}"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield number, "call", f"{before}pass{after}"
    elif isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        yield number, "result", f"{before}return None{after}"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield number, "bound", f"{before}{1 if node.value in (1_000, 1_000_000) else node.value + 1}{after}"
    elif isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp | ast.Call):
        yield from swapped(number, line, at.col_offset, at.end_col_offset, ".py")


def swapped(number: int, line: str, start: int, end: int, suffix: str) -> Iterator[Change]:
    texts = [match.span() for match in re.finditer(r"""(["'])(?:\\.|(?!\1).)*\1""", line)]
    for pair in SWAPS[suffix]:
        for old, new in (pair, pair[::-1]):
            for match in re.finditer(
                rf"(?<![\w<>=~!]){re.escape(old)}(?![\w<>=])|{re.escape(old)}(?<= )", line
            ):
                is_in_text = any(first < match.start() < last for first, last in texts)
                if start <= match.start() and match.end() <= end and not is_in_text:
                    yield number, "swap", line[: match.start()] + new + line[match.end() :]


def draw(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield mutants that differ: a folder is drawn, then a file by its size, a kind of change, and a change."""
    folders = defaultdict[tuple[str, ...], list[Path]](list)
    for path in sorted([*APP.rglob("*.py"), *APP.rglob("lua/*.lua")]):
        parts = path.relative_to(APP).parts[:-1]
        if path.name != "__init__.py" and "migrations" not in parts:
            folders[(path.suffix, *parts[: 2 if "services" in parts else 1])].append(path)
    chance, seen = random.Random(seed), set[tuple[Path, int, str]]()
    while len(seen) < count:
        suffix = chance.choice([".py", ".py", ".lua"])
        paths = folders[chance.choice([each for each in folders if each[0] == suffix])]
        [path] = chance.choices(paths, weights=[each.stat().st_size for each in paths])
        lines = path.read_text().splitlines()
        if changes := [*(of_lua if suffix == ".lua" else of_python)(lines)]:
            kind = chance.choice(sorted({kind for _, kind, _ in changes}))
            number, _, new = chance.choice([each for each in changes if each[1] == kind])
            if (path, number, new) not in seen and is_valid(
                suffix, [*lines[: number - 1], new, *lines[number:]]
            ):
                seen.add((path, number, new))
                old, file = lines[number - 1], str(path.relative_to(ROOT))
                yield {"file": file, "kind": kind, "line": number, "old": old, "new": new}


def is_valid(suffix: str, lines: list[str]) -> bool:
    try:
        return suffix == ".lua" or bool(ast.parse("\n".join(lines)))
    except SyntaxError:
        return False


def functions(lines: list[str]) -> list[Function]:
    return [each for each in ast.walk(ast.parse("\n".join(lines))) if isinstance(each, Function)]


def tests_of(file: str) -> str:
    """Return the folder of the tests of a file; tests/ itself if it has none of its own."""
    parts = Path(file).parts
    folder = f"tests/{parts[2 if parts[1] == 'services' else 1]}"
    return folder if (ROOT / folder).is_dir() else "tests"


def run(drawn: Path, done: Path) -> None:
    tried = len(done.read_text().splitlines()) if done.exists() else 0
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, name], check=True)
        for mutant in map(json.loads, drawn.read_text().splitlines()[tried:]):
            path = Path(name, mutant["file"])
            text, stat = path.read_text(), path.stat()
            lines = text.split("\n")
            lines[mutant["line"] - 1] = mutant["new"]
            path.write_text("\n".join(lines))
            note(done, mutant | {"caught": trial(Path(name), tests_of(mutant["file"]))})
            path.write_text(text)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # what was compiled counts again


def trial(clone: Path, tests: str) -> str | None:
    """Return the test that fails first, "hangs", or None."""
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-seed=0", tests]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *options]
    try:
        ended = subprocess.run(
            command, cwd=clone, env=environment, capture_output=True, text=True, timeout=HANGS
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)
    return None if not ended.returncode else failed[0] if failed else "dies"


def note(path: Path, what: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    if verb == "draw":
        for drawn in draw(int(words[0]), int(words[1])):
            note(Path(words[2]), drawn)
    else:
        run(*(Path(each).resolve() for each in words))
