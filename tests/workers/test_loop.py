"""The loop that all workers share, with real signals in this process."""

import logging
import signal
from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.services.queues import Claimed, Consumer, TaskQueue
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.worker import Poller, Worker
from components.workers import outage as outages
from components.workers.limits import Limits
from components.workers.outage import Outage
from components.workers.signals import HELD_BACK, release
from tests.fixtures.worker import NOTE, MakeWorker, counts, push, reaches
from tests.support.queues import claim, claim_one, end_lease

SIGNALS = (signal.SIGTERM, signal.SIGINT)
ALL_SIGNALS = (*SIGNALS, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTIN)


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
def test_a_signal_quiets_it_or_stops_it(
    redis: Redis, number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Signalled(signal.SIGTSTP, signal.SIGTSTP, number)

    assert worker.run() == 0
    assert (worker.is_quiet, worker.is_dismissed, worker._script) == (True, True, [])
    assert "Stopping at once." not in caplog.text


def test_signals_that_come_while_it_closes_do_not_keep_it_from_closing(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Signalled(signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGTERM)

    assert worker.run() == 0
    assert worker.closed == 1
    assert caplog.text.count("Stopping at once.") == 1
    assert TaskQueue().workers() == []


@pytest.fixture
def kept() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ALL_SIGNALS}
    yield
    release()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("kept")
def test_when_it_is_over_signals_do_what_the_process_needs(redis: Redis) -> None:
    before = [signal.getsignal(number) for number in ALL_SIGNALS]
    Signalled(*ALL_SIGNALS[::-1]).run()
    assert [signal.getsignal(number) for number in ALL_SIGNALS] == before

    # A worker that starts anew would else be killed by one that comes before it has begun to.
    worker = Signalled()
    worker.ends_process = True
    worker.stop()
    worker.run()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) >= set(HELD_BACK)
    release()
    assert [signal.getsignal(number) for number in SIGNALS] == before[:2]

    worker = Signalled(signal.SIGTERM)
    worker.ends_process = True
    worker.run()
    release()
    assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_IGN] * 2, "one too many is ignored"


def test_a_quiet_worker_may_claim_nothing_and_says_so_with_its_next_heartbeat(redis: Redis) -> None:
    worker = Signalled()
    worker.beat()
    assert (worker.may_claim, Worker.wants_wake(worker)) == (True, True)
    worker.quiet()
    assert (worker.may_claim, Worker.wants_wake(worker)) == (False, False)
    assert [info.is_quiet for info in TaskQueue().workers()] == [False]

    worker.beat()  # although it is not time yet

    assert [info.is_quiet for info in TaskQueue().workers()] == [True]


@pytest.mark.parametrize(
    ("order", "is_quiet", "is_dismissed"), [("", False, False), ("quiet", True, False), ("stop", False, True)]
)
def test_a_worker_obeys_what_the_control_room_asks(
    redis: Redis, order: str, is_quiet: bool, is_dismissed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Signalled()
    worker.obey(order)

    assert (worker.is_quiet, worker.is_dismissed, worker.is_stopping) == (
        is_quiet,
        is_dismissed,
        is_dismissed,
    )
    worker._script = [signal.SIGTERM]
    assert worker.run() == 0
    assert "Stopping at once." not in caplog.text, "the signal was the first"


class Telling(Signalled):
    def describe_running(self) -> list[str]:
        self.stop()
        return ["Task 1 (hold) has run for 3 s."]

    def tick(self) -> float:
        super().tick()
        return 5.0


def test_asked_what_it_does_a_worker_shows_its_stacks_and_its_tasks(
    redis: Redis, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)

    assert Telling(signal.SIGTTIN).run() == 0
    assert "Task 1 (hold) has run for 3 s." in caplog.text
    stacks = capfd.readouterr().err
    assert "Current thread" in stacks
    assert "in _next_signal" in stacks


def test_a_worker_that_has_reached_a_limit_retires_unless_it_is_quiet_and_says_why_once(
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

    quiet = Signalled()
    quiet.limits = Limits(max_memory=1)
    quiet.quiet()
    quiet.beat()
    assert not quiet.is_retiring


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


MANY = range(200)  # draws


def test_a_limit_of_tasks_is_lowered_by_a_tenth_at_most() -> None:
    assert {Limits(max_tasks=100).max_tasks for _ in MANY} <= set(range(90, 101))
    assert len({Limits(max_tasks=100).max_tasks for _ in MANY}) > 1


def test_an_outage_may_last_for_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages.random, "uniform", lambda shortest, longest: longest)
    outage = Outage(harmless=60.0)
    pauses = [outage.goes_on(RedisUnavailable("It is away.")) for _ in range(2_000)]

    assert pauses == [0.2, 0.4, 0.8, 1.6, *[2.0] * 1_996]
    outage.is_over()
    assert outage.goes_on(RedisUnavailable("It is away.")) == 0.2

    # It is recent until all others have renewed their leases.
    for harmless, is_recent in ((60.0, False), (0.0, True)):
        outage = Outage(harmless)
        assert not outage.is_recent
        outage.goes_on(RedisUnavailable("It is away."))
        assert outage.is_recent == is_recent
        outage.is_over()
        assert outage.is_recent == is_recent
    monkeypatch.setattr(outages, "_RENEWAL", -60.0)
    outage = Outage(harmless=0.0)
    outage.goes_on(RedisUnavailable("It is away."))
    outage.is_over()
    assert not outage.is_recent


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["worker", "poller"])
def test_after_an_outage_nobody_takes_over_at_once_and_everybody_in_the_end(
    backend: RedisBackend, redis: Redis, make_worker: MakeWorker, start: Callable[[Worker], Worker], kind: str
) -> None:
    [task_id] = push(NOTE)
    claim_one(Consumer())
    end_lease(redis, task_id)
    worker = make_worker() if kind == "worker" else Poller()
    worker.outage = Outage(harmless=0.0)
    worker.outage.goes_on(RedisUnavailable("It is away."))
    worker.tick()

    assert counts() == {"running": 1}

    start(worker)
    assert reaches(successful=1) if kind == "worker" else reaches(ready=1)
    info = TaskQueue().get(task_id)
    assert info is not None
    assert info.crashes == 1 if kind == "poller" else info.worker_ids
