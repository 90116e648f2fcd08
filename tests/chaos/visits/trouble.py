"""
What is done to those who copy and count, to their connections, to Redis and to the table of addresses; the seed
decides to whom.

Each act comes when so many more lines were counted, so that all of them meet processes that are at work.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.scripts import Script
from tests.chaos.visits import plan, world
from tests.chaos.visits.observer import Observer
from tests.commands.processes import Command
from tests.support.geo import city, import_networks
from tests.support.proxy import LossyProxy

_PAUSE = 0.01  # seconds
_LAST = 0.75  # of the lines: until then producers have something left to copy
_SCRIPTS = ("append", "claim", "beat", "flush")


class Trouble:
    def __init__(self, server: EmbeddedServer, proxy: LossyProxy, observer: Observer, folder: Path) -> None:
        self._server, self._proxy, self._observer, self._folder = server, proxy, observer, folder
        self._random = Random(plan.SEED)
        self._stopped: dict[int, float] = {}
        self.done: Counter[str] = Counter()

    def make(self, command: Command, *, within: float) -> None:
        """Until each act was done in each round."""
        acts = [act for _ in range(plan.ROUNDS) for act in self._round()]
        deadline = time.monotonic() + within
        for number, act in enumerate(acts, 1):
            threshold = _LAST * plan.LINES * number / len(acts)
            while self._observer.lines < threshold:
                assert not command.has_ended(), command.output
                assert time.monotonic() < deadline, f"It stands still at {self._observer.lines:,} lines."
                self._let_go_on(time.monotonic())
                time.sleep(_PAUSE)
            act()
        self._let_go_on(float("inf"))
        self._proxy.lose_replies(to="", times=0)

    def _round(self) -> list[Callable[[], None]]:
        acts: list[Callable[[], None]] = [self._flush_scripts, self._cut, self._import]
        # Once for so long that all leases are over.
        acts += [partial(self._kill_redis, longest) for longest in (0.3, 1.5 * plan.LEASE)]
        for role, kills, stops in (("worker", 5, 5), ("counter", 2, 2), ("producer", 2, 1)):
            acts += [partial(self._strike, signal.SIGKILL, role)] * kills
            acts += [partial(self._strike, signal.SIGSTOP, role)] * stops
        acts += [partial(self._lose, script) for script in _SCRIPTS]
        acts += [partial(self._lose, self._random.choice(_SCRIPTS), silently=True)]
        self._random.shuffle(acts)
        return acts

    def _strike(self, number: signal.Signals, role: str) -> None:
        pids = [int(path.suffixes[0][1:]) for path in self._folder.glob(f"{role}.*.pid")]
        if there := sorted(pid for pid in pids if pid not in self._stopped):
            pid = self._random.choice(there)
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                self.done[f"{number.name} {role}"] += 1
                if number == signal.SIGSTOP:
                    self._stopped[pid] = time.monotonic() + self._random.uniform(1.2, 2.5) * plan.LEASE

    def _let_go_on(self, at: float) -> None:
        for pid in [pid for pid, until in self._stopped.items() if until <= at]:
            del self._stopped[pid]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _kill_redis(self, longest: float) -> None:
        self._server.kill()
        time.sleep(self._random.uniform(0.7, 1) * longest)
        self._server.start()
        self.done["Redis killed"] += 1

    def _flush_scripts(self) -> None:
        self._direct("SCRIPT", "FLUSH")

    def _cut(self) -> None:
        self._direct("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def _import(self) -> None:
        """Another version of the table of addresses, by which all visitors live where they did."""
        elsewhere = {f"223.{self.done['table imported']}.0.0/16": city("NZ")}
        is_done = False
        while not is_done:  # connections may be those of a server that was killed
            with suppress(RedisUnavailable):
                import_networks(self._folder, world.records() | elsewhere)
                is_done = True
        self.done["table imported"] += 1

    def _lose(self, script: str, *, silently: bool = False) -> None:
        self._proxy.lose_replies(
            to=Script(f"logs/{script}").sha,
            times=1 if silently else self._random.randint(2, 6),
            silently=silently,
        )
        self.done["silence" if silently else f"replies to {script} lost"] += 1

    def _direct(self, *command: str) -> None:
        with Redis.from_url(self._server.url) as client:
            client.execute_command(*command)
        self.done[" ".join(command[:2])] += 1
