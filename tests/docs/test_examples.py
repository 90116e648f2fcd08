"""Each example of README and docs runs, in a project like the one that it speaks of, on a private server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from tests.docs.blocks import PAGES, ROOT, blocks

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
