"""
Each shell example of README and docs runs, in order, against a private server, or says why it does not.

manage.py is that of the shop, redis-cli asks the private server, redis-server starts another one beside it, and pip
installs nothing. Folders of a production machine are replaced by others.
"""

from __future__ import annotations

import gzip
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


def test_each_block_is_of_a_kind_that_a_test_runs_or_reads() -> None:
    """Blocks of Python and shell are run; the others are settings of other programs, markup and output."""
    kinds = {
        kind
        for page in PAGES
        for kind in re.findall(r"^ *```(\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert kinds <= {"python", "sh", "yaml", "json", "html", "css", "{toctree}", "{eval-rst}"}
