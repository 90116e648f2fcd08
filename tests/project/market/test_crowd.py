"""
Processes trade on a real SQLite file and on a real PostgreSQL: many at once; one that is stopped in the middle of its
purchase for longer than it may hold the item's lock; and a worker that sends the mail of a sale.

Nobody waits until the lock's time is over: its key is made to expire.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes
from pathlib import Path

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from tests.project.market.crowd import FLASH, FUNDS, PRICE, ROOT, STOCK, VISITORS, Crowd, assert_books_balance
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


def test_a_worker_sends_the_mail_of_a_sale(
    tmp_path: Path, redis: Redis, redis_server: EmbeddedServer
) -> None:
    mail = tmp_path / "mail"
    crowd = Crowd(f"sqlite:///{tmp_path}/market.sqlite3", redis_server.url, EMAIL_URL=f"filemail:///{mail}")
    crowd.prepare()
    assert crowd.trade([("jack", crowd.first_of("joe"), PRICE)]) == ["bought"]

    worker = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", "runworker", "--burst"],
        cwd=ROOT,
        env=crowd.environment,
        capture_output=True,
        text=True,
    )

    assert worker.returncode == 0, worker.stderr
    assert "<market-sold-1@fakegame.example> sent to joe@fakegame.example" in worker.stderr
    (letter,) = (message_from_bytes(file.read_bytes()) for file in mail.iterdir())
    assert letter["Message-ID"] == "<market-sold-1@fakegame.example>"
    assert letter["To"] == "joe@fakegame.example"
    assert letter["Subject"] == "Sold: joe's 0 for 100 gold"


@pytest.mark.long
def test_exactly_one_of_many_buyers_gets_the_item(crowd: Crowd) -> None:
    wanted = crowd.first_of("joe")

    outcomes = crowd.trade([("jack", wanted, PRICE)] * 8, [("jill", wanted, PRICE)] * 8)

    facts = crowd.ask("audit")
    assert Counter(outcomes) == {"bought": 1, "ListingClosed": 15}
    assert len(facts["sold"]) == 1
    assert facts["funds"]["joe"] == FUNDS + PRICE
    assert_books_balance(facts)


@pytest.mark.long
def test_a_flash_sale_is_never_oversold(crowd: Crowd) -> None:
    """Twenty-four want ten things, four of them twice at once."""
    half = len(VISITORS) // 2
    groups = [VISITORS[:half], VISITORS[half:] + VISITORS[:4]]

    outcomes = crowd.trade(*([(name, FLASH, PRICE) for name in names] for names in groups))

    flash = crowd.ask("audit")["flash"]
    assert flash["remaining"] == 0
    assert Counter(outcomes)["bought"] == STOCK
    assert set(outcomes) <= {"bought", "SoldOut", "OneEach"}
    assert len(set(flash["buyers"])) == STOCK
    assert flash["owners"] == flash["buyers"]
    assert flash["spent"] == STOCK * PRICE


# One that is stopped

#: Before the transaction has locked a row; the first statement looks up the item, and takes no lock of any kind.
BEFORE = 2
#: Having locked the listing; having paid.
INSIDE = [4, 12]


@pytest.fixture
def wanted(crowd: Crowd, redis: Redis) -> int:
    """A listing of joe's, for which nobody has paid."""
    return crowd.first_of("joe")


def lock_of(listing: int) -> str:
    return key_of(f"item:{listing}")  # prepare() gives the item and its listing the same number


def fence_of(redis: Redis, listing: int) -> int:
    """The fence that the item's lock gave last."""
    return -int(redis.zscore(LockKeys.named(f"item:{listing}").held, "") or 0)


def end(redis: Redis, lock: str) -> None:
    """The time of the lock's holder is over."""
    assert redis.pexpire(lock, 1)
    assert eventually(lambda: not redis.exists(lock))


def outcome(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGCONT)
    answer, _ = process.communicate(timeout=60)
    return answer.strip().strip('"')


def audit(crowd: Crowd, wanted: int, owner: str) -> dict[str, int]:
    """Check that joe sold it to *owner*, and to nobody else; return the fences of things."""
    facts = crowd.ask("audit")
    assert facts["owners"][str(wanted)] == owner
    assert facts["funds"] == {"joe": FUNDS + PRICE, "jack": FUNDS, "jill": FUNDS, owner: FUNDS - PRICE}
    assert_books_balance(facts)
    fences: dict[str, int] = facts["fences"]
    return fences


@pytest.mark.long
def test_a_holder_stopped_with_the_lock_is_refused_when_another_has_bought(
    crowd: Crowd, redis: Redis, wanted: int
) -> None:
    with crowd.stalled(("jack", wanted, PRICE), BEFORE) as jack:
        first = fence_of(redis, wanted)
        end(redis, lock_of(wanted))
        assert crowd.trade([("jill", wanted, PRICE)]) == ["bought"]
        second = fence_of(redis, wanted)

        assert outcome(jack) == "Overtaken"

    assert first < second == audit(crowd, wanted, "jill")[str(wanted)]


@pytest.mark.long
@pytest.mark.parametrize("number", INSIDE)
def test_a_holder_stopped_in_its_transaction_ends_it_before_the_next(
    crowd: Crowd, redis: Redis, wanted: int, number: int
) -> None:
    with crowd.stalled(("jack", wanted, PRICE), number) as jack, ThreadPoolExecutor(1) as pool:
        first = fence_of(redis, wanted)
        end(redis, lock_of(wanted))
        jill = pool.submit(crowd.trade, [("jill", wanted, PRICE)])
        assert eventually(lambda: redis.exists(lock_of(wanted)))

        assert outcome(jack) == "bought"
        assert jill.result() == ["ListingClosed"]

    assert audit(crowd, wanted, "jack")[str(wanted)] == first < fence_of(redis, wanted)


@pytest.mark.long
@pytest.mark.parametrize("number", [BEFORE, INSIDE[-1]])
def test_a_killed_holder_leaves_only_a_lock_that_expires(
    crowd: Crowd, redis: Redis, wanted: int, number: int
) -> None:
    with crowd.stalled(("jack", wanted, PRICE), number) as jack:
        jack.kill()
        jack.wait()
        assert redis.exists(lock_of(wanted))
        end(redis, lock_of(wanted))

        assert crowd.trade([("jill", wanted, PRICE)]) == ["bought"]

    audit(crowd, wanted, "jill")
