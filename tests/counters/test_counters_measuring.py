"""counted and timed: functions, coroutines and blocks count themselves, and behave as without."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from components.services.counters import buffer, counted, measuring, timed
from components.services.counters.histograms import bucket_of


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """What is counted in memory."""
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)
    buffer.forget()
    yield buffer._buffer.counts
    buffer.forget()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The nanoseconds that the clock shows, one after the other."""
    shown: list[int] = []
    monkeypatch.setattr(measuring, "perf_counter_ns", lambda: shown.pop(0))
    return shown


def test_calls_and_errors_are_counted(counts: dict[str, int]) -> None:
    @counted("divisions")
    def divide(number: int, by: int) -> float:
        """Divide."""
        return number / by

    assert divide(6, by=3) == 2
    with pytest.raises(ZeroDivisionError):
        divide(6, by=0)

    assert counts == {"divisions": 2, "divisions-errors": 1}
    assert (divide.__name__, divide.__doc__) == ("divide", "Divide.")


def test_blocks_are_counted(counts: dict[str, int]) -> None:
    for _ in range(3):
        with counted("shop:visits"):
            pass
    with pytest.raises(LookupError), counted("shop:visits"):
        raise LookupError

    assert counts == {"shop:visits": 4, "shop-errors:visits": 1}


def test_the_end_of_a_process_is_no_error(counts: dict[str, int]) -> None:
    with pytest.raises(SystemExit), counted("runs"):
        raise SystemExit

    assert counts == {"runs": 1}


def test_times_are_added_up(counts: dict[str, int], clock: list[int]) -> None:
    @timed("pay:card")
    def pay() -> None: ...

    clock += [0, 1_500_000, 10_000_000, 12_000_999]
    pay()
    pay()
    clock += [1, 1_000_000_001]
    with pytest.raises(LookupError), timed("pay:card"):
        raise LookupError

    assert counts == {
        "pay:card": 3,
        "pay-us:card": 1_500 + 2_000 + 1_000_000,
        "pay-errors:card": 1,
        **{("pay-us:card", bucket_of(took)): 1 for took in (1_500, 2_000, 1_000_000)},
    }


def test_coroutines_are_timed_while_they_are_awaited(counts: dict[str, int], clock: list[int]) -> None:
    """Two at once: each has a time of its own."""
    clock += [0, 1_000, 10_000, 21_000]

    async def both() -> list[int]:
        gate = asyncio.Event()

        @timed("waits")
        async def wait(number: int) -> int:
            if number:
                gate.set()
            await gate.wait()
            return number

        assert inspect.iscoroutinefunction(wait)
        return list(await asyncio.gather(wait(0), wait(1)))

    assert asyncio.run(both()) == [0, 1]
    assert counts == {
        "waits": 2,
        "waits-us": 30,
        ("waits-us", bucket_of(9)): 1,
        ("waits-us", bucket_of(21)): 1,
    }


def test_a_function_is_timed_in_many_threads_at_once(counts: dict[str, int]) -> None:
    barrier = Barrier(4)

    @timed("meetings")
    def meet() -> None:
        barrier.wait()

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(meet) for _ in range(8)]:
            each.result()
    buffer._buffer._fold(buffer._buffer._late())

    assert counts["meetings"] == 8
