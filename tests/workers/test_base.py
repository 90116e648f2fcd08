"""The loop that all workers share, with real signals in this process."""

from __future__ import annotations

import signal

import pytest
from redis import Redis

from components.services.queues import Consumer, TaskQueue
from components.workers.base import Worker

SIGNALS = (signal.SIGTERM, signal.SIGINT)


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
    before = [signal.getsignal(number) for number in SIGNALS]
    Signalled(signal.SIGTERM).run()

    assert [signal.getsignal(number) for number in SIGNALS] == before
