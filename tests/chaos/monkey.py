"""
The monkey: each second it kills a worker, if another is at work, and does one thing more; its seed decides which.

What it did, and when, it keeps for the verdict: while Redis is away or a queue is paused, tasks may wait.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.services.queues import TaskQueue
from tests.chaos import plan
from tests.chaos.crew import Crew
from tests.chaos.producers import Producer
from tests.support.proxy import LossyProxy

_BEAT = 1.0  # seconds

#: What it has to have done.
DISTURBANCES = {
    "SIGKILL", "SIGSTOP", "Redis killed", "SCRIPT FLUSH", "connections cut", "replies lost", "silence", "pause",
    "cancel", "resend",
}  # fmt: skip


class Monkey:
    """Disturbs everybody for plan.SECONDS; calm() makes all good again."""

    def __init__(
        self, server: EmbeddedServer, crew: Crew, proxies: Sequence[LossyProxy], producer: Producer
    ) -> None:
        self._server, self._crew, self._proxies, self._producer = server, crew, proxies, producer
        self._random = Random(plan.SEED)
        self._queue = TaskQueue()
        self._acts: list[Callable[[], None]] = []
        self._resume_at: dict[str, float] = {}
        self.done: Counter[str] = Counter()
        self._diary: list[tuple[float, str]] = []
        #: When Redis was away, and when which queue was paused.
        self.away: list[tuple[float, float]] = []
        self.paused: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        #: What cancel() answered, by id: "at once", "asked" or "too late".
        self.cancelled: dict[str, str] = {}
        self.resent: set[str] = set()

    def run(self) -> None:
        until = next_beat = time.monotonic() + _BEAT
        until += plan.SECONDS
        while (now := time.monotonic()) < until:
            self._crew.resume(until=now)
            self._resume_queues(until=now)
            if now >= next_beat:
                next_beat += _BEAT
                self._act(self._next_act())
                self._act(self._kill_worker)
            time.sleep(0.02)

    def calm(self) -> None:
        for proxy in self._proxies:
            proxy.lose_replies(to="", times=0)
        self._crew.resume(until=float("inf"))
        self._resume_queues(until=float("inf"))

    def cancel(self, tasks: Sequence[tuple[str, str]]) -> None:
        """One by one, so that the answer is of that task."""
        for task_id, queue in tasks:
            answer = self._insist(lambda q=queue, i=task_id: self._queue.cancel(q, [i]))
            said = "at once" if answer.at_once else "asked" if answer.asked else "too late"
            # Once cancelled, always cancelled; one that only was asked may be cancelled by a second call.
            if self.cancelled.get(task_id) not in ("at once", "asked") or said == "at once":
                self.cancelled[task_id] = said
            self.done["cancel"] += 1

    def diary(self) -> str:
        """What it did, and when."""
        return "\n".join(f"{at:.2f} {what}" for at, what in self._diary)

    def _act(self, act: Callable[[], None]) -> None:
        self._diary.append((time.monotonic(), act.__name__.removeprefix("_")))
        act()

    def _next_act(self) -> Callable[[], None]:
        """Each comes once before any comes again."""
        if not self._acts:
            self._acts = [
                self._stop_worker, self._restart_redis, self._flush_scripts, self._pause, self._cancel,
                self._cut, self._lose, self._lose_silently, self._resend,
            ]  # fmt: skip
            self._random.shuffle(self._acts)
        return self._acts.pop()

    def _kill_worker(self) -> None:
        at_work = self._crew.at_work()
        if len(at_work) > 1:
            self._crew.kill(self._random.choice(at_work))
            self.done["SIGKILL"] += 1

    def _stop_worker(self) -> None:
        at_work = self._crew.at_work()
        if len(at_work) > 1:
            self._crew.stop(self._random.choice(at_work), plan.LEASE + self._random.uniform(0.3, 2.0))
            self.done["SIGSTOP"] += 1
        else:
            self._acts.insert(0, self._stop_worker)  # later in this round

    def _restart_redis(self) -> None:
        began = time.monotonic()
        self._server.kill()
        time.sleep(self._random.uniform(0.0, 0.5))
        self._server.start()
        self.away.append((began, time.monotonic()))
        self.done["Redis killed"] += 1

    def _flush_scripts(self) -> None:
        self._direct("SCRIPT", "FLUSH")
        self.done["SCRIPT FLUSH"] += 1

    def _cut(self) -> None:
        self._direct("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        self.done["connections cut"] += 1

    def _pause(self) -> None:
        queue = self._random.choice(plan.QUEUES)
        if queue not in self._resume_at:
            began = time.monotonic()
            self._insist(lambda: self._queue.pause(queue))
            self.paused[queue].append((began, float("inf")))
            self._resume_at[queue] = time.monotonic() + self._random.uniform(0.5, 3.0)
            self.done["pause"] += 1

    def _resume_queues(self, *, until: float) -> None:
        for queue in [name for name, at in self._resume_at.items() if at <= until]:
            del self._resume_at[queue]
            self._insist(lambda name=queue: self._queue.resume(name))
            began, _open = self.paused[queue].pop()
            self.paused[queue].append((began, time.monotonic()))

    def _cancel(self) -> None:
        recent = list(self._producer.recent)
        chosen = self._random.sample(recent, min(10, len(recent)))
        chosen += [each for each in recent if each[1] in ("patient", "doomed")]
        self.cancel([(task_id, queue) for task_id, _kind, queue in chosen])

    def _resend(self) -> None:
        """Of the tasks that always fail: they die again."""
        for queue in plan.QUEUES:
            dead = self._insist(
                lambda q=queue: list(self._queue.search(q, "dead", "tests.chaos.jobs.failing"))
            )
            ids = [info.id for info in dead if not info.is_cancelled][:3]
            self._insist(lambda q=queue, i=ids: self._queue.resend(q, i))
            self.resent.update(ids)
            self.done["resend"] += len(ids)

    def _lose(self) -> None:
        self._random.choice(self._proxies).lose_replies(
            to=self._random.choice(("EVALSHA", "BLPOP")), times=self._random.randint(1, 4)
        )
        self.done["replies lost"] += 1

    def _lose_silently(self) -> None:
        self._random.choice(self._proxies).lose_replies(to="EVALSHA", times=1, silently=True)
        self.done["silence"] += 1

    def _direct(self, *command: str) -> None:
        with Redis.from_url(self._server.url) as client:
            client.execute_command(*command)

    def _insist(self, call: Callable[[], Any]) -> Any:
        while True:
            try:
                return call()
            except RedisUnavailable:
                time.sleep(0.01)
