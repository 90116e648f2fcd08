"""Many processes with many threads trade at once, on a real SQLite file and on a real PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.embedded import EmbeddedServer
from tests.market.crowd import FUNDS, PRICE
from tests.support.postgres import find_programs, postgres

ROOT = Path(__file__).parent.parent.parent
START = "import django; django.setup(); from tests.market.crowd import main; main()"
Order = tuple[str, int, int]


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'market.sqlite3'}"
        return
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and postgres are neither on PATH nor under /usr/lib/postgresql")
    with postgres(programs) as url:
        yield url


class Crowd:
    """Runs crowd.main against one database and one Redis."""

    def __init__(self, database_url: str, redis_url: str) -> None:
        self._environment = {
            **os.environ,
            "DEBUG": "1",
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "DJANGO_SETTINGS_MODULE": "project.settings",
        }

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", START, *arguments],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, command: str) -> Any:
        return json.loads(self._start(command).communicate(timeout=60)[0])

    def trade(self, *groups: list[Order]) -> list[str]:
        """Each group in a process, each order in a thread, all at once; what came of each order, in order."""
        processes = [self._start("trade", json.dumps(orders)) for orders in groups]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == '"ready"\n'
        answers = []
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            answers += json.loads(process.communicate(timeout=60)[0])
        return answers


@pytest.fixture
def crowd(database_url: str, redis_server: EmbeddedServer) -> Crowd:
    return Crowd(database_url, redis_server.url)


def assert_books_balance(facts: dict[str, Any]) -> None:
    """No gold was made or lost, and every sold thing is where its last sale says."""
    assert sum(facts["funds"].values()) == 3 * FUNDS
    assert min(facts["funds"].values()) >= 0
    for sale in facts["sold"]:
        assert facts["owners"][str(sale["item"])] == sale["buyer"]
        assert facts["status"][str(sale["listing"])] == "sold"
    assert Counter(facts["status"].values())["sold"] == len(facts["sold"])
    assert facts["unmailed"] == 0


def test_of_many_who_want_one_thing_exactly_one_gets_it(crowd: Crowd) -> None:
    listings = crowd.ask("prepare")
    wanted = next(int(pk) for pk, seller in listings.items() if seller == "joe")

    outcomes = crowd.trade([("jack", wanted, PRICE)] * 8, [("jill", wanted, PRICE)] * 8)

    facts = crowd.ask("audit")
    assert Counter(outcomes) == {"bought": 1, "ListingClosed": 15}
    assert len(facts["sold"]) == 1
    assert facts["funds"]["joe"] == FUNDS + PRICE
    assert_books_balance(facts)


def test_players_who_buy_from_each_other_all_at_once_do_not_block_each_other(crowd: Crowd) -> None:
    listings = crowd.ask("prepare")
    buyer_of = {"joe": "jack", "jack": "jill", "jill": "joe"}
    orders = [(buyer_of[seller], int(pk), PRICE) for pk, seller in listings.items()]

    outcomes = crowd.trade(orders[0::2], orders[1::2])

    facts = crowd.ask("audit")
    assert set(outcomes) == {"bought"}
    assert facts["funds"] == {"joe": FUNDS, "jack": FUNDS, "jill": FUNDS}
    assert_books_balance(facts)


def test_a_purse_is_spent_once(crowd: Crowd) -> None:
    """Jack can pay for ten of the sixteen things that he orders at once."""
    listings = crowd.ask("prepare")
    orders = [("jack", int(pk), PRICE) for pk, seller in listings.items() if seller != "jack"]

    outcomes = crowd.trade(orders[0::2], orders[1::2])

    facts = crowd.ask("audit")
    assert Counter(outcomes) == {"bought": 10, "NotEnoughFunds": 6}
    assert facts["funds"]["jack"] == 0
    assert_books_balance(facts)
