"""
A buyer's process is stopped in the middle of its purchase, for longer than it may hold the item's lock.

The databases are real, the signals too; only the time is not waited for: the lock's key is made to expire.
"""

from __future__ import annotations

import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from tests.project.market.crowd import FUNDS, PRICE, Crowd, assert_books_balance
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.long]

#: Before the transaction has locked a row; the first statement looks up the item, and takes no lock of any kind.
BEFORE = 2
#: Having locked the listing; having paid.
INSIDE = [4, 12]


@pytest.fixture
def wanted(crowd: Crowd, redis: Redis) -> int:
    """A listing of joe's, for which nobody has paid."""
    return crowd.first_of("joe")


def lock_of(listing: int) -> str:
    name = f"item:{listing}"  # prepare() gives the item and its listing the same number
    return key_of(name)


def fence_of(redis: Redis, listing: int) -> int:
    """The fence that the item's lock gave last."""
    name = f"item:{listing}"
    return -int(redis.zscore(LockKeys.named(name).held, "") or 0)


def end(redis: Redis, lock: str) -> None:
    """The time of the lock's holder is over."""
    assert redis.pexpire(lock, 1)
    assert eventually(lambda: not redis.exists(lock))


def outcome(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGCONT)
    answer, _ = process.communicate(timeout=60)
    return answer.strip().strip('"')


def test_a_holder_stopped_with_the_lock_is_refused_when_another_has_bought(
    crowd: Crowd, redis: Redis, wanted: int
) -> None:
    with crowd.stalled(("jack", wanted, PRICE), BEFORE) as jack:
        first = fence_of(redis, wanted)
        end(redis, lock_of(wanted))
        assert crowd.trade([("jill", wanted, PRICE)]) == ["bought"]
        second = fence_of(redis, wanted)

        assert outcome(jack) == "Overtaken"

    facts = crowd.ask("audit")
    assert first < second == facts["fences"][str(wanted)]
    assert facts["owners"][str(wanted)] == "jill"
    assert facts["funds"] == {"joe": FUNDS + PRICE, "jack": FUNDS, "jill": FUNDS - PRICE}
    assert_books_balance(facts)


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

    facts = crowd.ask("audit")
    assert facts["fences"][str(wanted)] == first < fence_of(redis, wanted)
    assert facts["owners"][str(wanted)] == "jack"
    assert facts["funds"] == {"joe": FUNDS + PRICE, "jack": FUNDS - PRICE, "jill": FUNDS}
    assert_books_balance(facts)


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

    facts = crowd.ask("audit")
    assert facts["owners"][str(wanted)] == "jill"
    assert facts["funds"] == {"joe": FUNDS + PRICE, "jack": FUNDS, "jill": FUNDS - PRICE}
    assert_books_balance(facts)
