"""The loop that all workers share, with real signals in this process."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest
from redis import Redis

from components.kit.worker.limits import Limits
from components.kit.worker.signals import HELD_BACK, release
from components.services.queues import Claimed, Consumer, TaskQueue
from components.services.queues.worker.worker import Worker
from tests.support.queues import claim, claim_one, end_lease

SIGNALS = (signal.SIGTERM, signal.SIGINT)
ALL_SIGNALS = (*SIGNALS, signal.SIGTSTP, signal.SIGTTIN)


class Signalled(Worker):
    """Gets the signals of *script* one after the other: one in each tick, and one whenever it closes."""

    def __init__(self, *script: signal.Signals) -> None:
        super().__init__(Consumer(), lease=30)
        self._script = list(script)
        self.closed = 0

    def _next_signal(self) -> None:
        if self._script:
            signal.raise_signal(self._script.pop(0))

    def tick(self) -> float:
        self._next_signal()
        return 0.0

    def is_done(self) -> bool:
        return self.is_stopping

    def wants_wake(self) -> bool:
        return False  # a listener would outlive the test for seconds, and take the tokens of others

    def close(self) -> int:
        self._next_signal()
        self.closed += 1
        return super().close()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_it(redis: Redis, number: signal.Signals, caplog: pytest.LogCaptureFixture) -> None:
    worker = Signalled(number)

    assert worker.run() == 0
    assert worker.is_dismissed
    assert "Stopping at once." not in caplog.text


def test_signals_that_come_while_it_closes_do_not_keep_it_from_closing(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Signalled(signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGTERM)

    assert worker.run() == 0
    assert worker.closed == 1
    assert caplog.text.count("Stopping at once.") == 1
    assert TaskQueue().workers() == []


def test_when_it_is_over_signals_do_again_what_they_did_before(redis: Redis) -> None:
    before = [signal.getsignal(number) for number in ALL_SIGNALS]
    Signalled(*ALL_SIGNALS[::-1]).run()

    assert [signal.getsignal(number) for number in ALL_SIGNALS] == before


@pytest.fixture
def kept() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ALL_SIGNALS}
    yield
    release()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("kept")
def test_where_the_process_ends_with_it_a_signal_too_many_is_ignored(redis: Redis) -> None:
    worker = Signalled(signal.SIGTERM)
    worker.ends_process = True
    worker.run()
    release()

    assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_IGN] * 2


@pytest.mark.usefixtures("kept")
def test_where_the_process_ends_with_it_a_signal_waits_for_the_process_that_is_next(redis: Redis) -> None:
    """A worker that starts anew would else be killed by one that comes before it has begun to."""
    worker = Signalled()
    worker.ends_process = True
    worker.stop()
    worker.run()

    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) >= set(HELD_BACK)


@pytest.mark.usefixtures("kept")
def test_a_worker_that_ends_by_itself_leaves_the_first_signal_to_the_process(redis: Redis) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    worker = Signalled()
    worker.ends_process = True
    worker.stop()
    worker.run()
    release()

    assert [signal.getsignal(number) for number in SIGNALS] == before


# --- Quiet and dismissed ---------------------------------------------------------------------------


def test_a_quiet_worker_may_claim_nothing_and_says_so_with_its_next_heartbeat(redis: Redis) -> None:
    worker = Signalled()
    worker.beat()
    assert (worker.may_claim, Worker.wants_wake(worker)) == (True, True)
    worker.quiet()
    assert (worker.may_claim, Worker.wants_wake(worker)) == (False, False)
    assert [info.is_quiet for info in TaskQueue().workers()] == [False]

    worker.beat()  # although it is not time yet

    assert [info.is_quiet for info in TaskQueue().workers()] == [True]


def test_a_signal_quiets_it_and_does_not_stop_it(redis: Redis) -> None:
    worker = Signalled(signal.SIGTSTP, signal.SIGTSTP, signal.SIGTERM)

    assert worker.run() == 0
    assert worker.is_quiet
    assert worker._script == []


@pytest.mark.parametrize(
    ("order", "is_quiet", "is_dismissed"),
    [("", False, False), ("quiet", True, False), ("stop", False, True)],
)
def test_a_worker_obeys_what_the_control_room_asks(
    redis: Redis, order: str, is_quiet: bool, is_dismissed: bool
) -> None:
    worker = Signalled()
    worker.obey(order)

    assert (worker.is_quiet, worker.is_dismissed) == (is_quiet, is_dismissed)
    assert worker.is_stopping == is_dismissed


def test_a_signal_after_an_order_to_stop_is_the_first(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    worker = Signalled(signal.SIGTERM)
    worker.obey("stop")

    assert worker.run() == 0
    assert "Stopping at once." not in caplog.text


# --- Telling ---------------------------------------------------------------------------------------


class Telling(Signalled):
    def describe_running(self) -> list[str]:
        self.stop()
        return ["Task 1 (hold) has run for 3 s."]

    def tick(self) -> float:
        super().tick()
        return 5.0

    def is_done(self) -> bool:
        return self.is_stopping


def test_asked_what_it_does_a_worker_shows_its_stacks_and_its_tasks(
    redis: Redis, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)

    assert Telling(signal.SIGTTIN).run() == 0
    assert "Task 1 (hold) has run for 3 s." in caplog.text
    stacks = capfd.readouterr().err
    assert "Current thread" in stacks
    assert "in _next_signal" in stacks


# --- Limits ----------------------------------------------------------------------------------------


def test_a_worker_that_has_reached_a_limit_retires_and_says_why_once(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    worker = Signalled()
    worker.limits = Limits(max_memory=1)
    for _ in range(2):
        worker._next_beat = 0.0
        worker.beat()

    assert (worker.is_retiring, worker.may_claim, worker.is_stopping) == (True, False, False)
    assert caplog.text.count("A limit is reached: ") == 1


def test_a_quiet_worker_does_not_retire(redis: Redis) -> None:
    worker = Signalled()
    worker.limits = Limits(max_memory=1)
    worker.quiet()
    worker.beat()

    assert not worker.is_retiring


# --- Lost claims -----------------------------------------------------------------------------------


class Holding(Signalled):
    held: list[Claimed]

    def running(self) -> list[Claimed]:
        return self.held


def test_the_loss_of_a_claim_is_said_once(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    task_id = TaskQueue().push("tests.tasks.echo")
    worker = Holding()
    worker.held = [claim_one(worker.consumer)]
    said = f"The lease of task {task_id} ended before it was renewed"

    def beat() -> int:
        worker._next_beat = 0.0
        worker.beat()
        return caplog.text.count(said)

    assert beat() == 0
    end_lease(redis, task_id)
    claim_one(Consumer())
    assert [beat(), beat()] == [1, 1]

    end_lease(redis, task_id)
    worker.held.append(claim_one(worker.consumer))  # the same task again, beside the lost run
    assert beat() == 1
    end_lease(redis, task_id)
    claim(Consumer())  # takes it from there, for good
    assert [beat(), beat()] == [2, 2]
