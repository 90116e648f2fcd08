"""
Everything goes wrong at once, for most of a minute, under 20,000 tasks; then a ledger outside of Redis is read.

The plan, and how to run it longer, is in plan.py; what is promised, in verdict.py.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.client import get_client
from components.services.queues import TaskQueue
from tests.chaos import plan
from tests.chaos.crew import Crew, Member
from tests.chaos.ledger import Ledger
from tests.chaos.monkey import Monkey
from tests.chaos.producers import Producer
from tests.chaos.verdict import Verdict
from tests.commands.processes import ROOT
from tests.support.proxy import LossyProxy
from tests.support.queues import options
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

_PATIENCE = 120  # seconds for what takes a few
_QUEUES = [f"--queue={name}" for name in plan.QUEUES]


def wait_for_some(producer: Producer, is_over: threading.Event) -> int:
    """Wait for the latest task, again and again; how many ends were seen."""
    seen = 0
    while not is_over.wait(0.05):
        if producer.recent:
            task_id, _kind, _queue = producer.recent[-1]
            try:
                info = TaskQueue().wait_for(task_id, wait=3)
            except RedisUnavailable:
                continue
            seen += info is not None and info.state in ("successful", "dead")
    return seen


def all_have_ended() -> bool:
    return not any(stats.ready + stats.delayed + stats.running for stats in TaskQueue().all_stats())


def test_accepted_tasks_are_done_whatever_happens(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path, record_property: Any
) -> None:
    began = time.monotonic()
    folder = tmp_path / "ledger"
    folder.mkdir()
    is_over = threading.Event()
    with ExitStack() as stack:
        stack.enter_context(options(**plan.OPTIONS))
        to_worker, to_producer = (stack.enter_context(LossyProxy(server)) for _ in range(2))
        deaf = Member(["--queue=*"], to_worker.url)
        others = [
            Member([*_QUEUES], server.url),
            Member([*_QUEUES, "--round-robin"], server.url),
            Member([f"--queue={plan.QUEUES[0]}=3", f"--queue={plan.QUEUES[1]}=1"], server.url),
        ]
        crew = stack.enter_context(Crew(folder, deaf, *others))
        producer = Producer(folder, "inside", plan.TASKS // 2)
        outside = stack.enter_context(producing(to_producer.url, folder, plan.TASKS - plan.TASKS // 2))
        threads = stack.enter_context(ThreadPoolExecutor())
        stack.callback(is_over.set)
        pushing = threads.submit(producer.run)
        waiting = threads.submit(wait_for_some, producer, is_over)
        monkey = Monkey(server, crew, [to_worker, to_producer], producer)
        monkey.run()
        monkey.calm()
        pushing.result(_PATIENCE)
        assert outside.wait(_PATIENCE) == 0
        is_over.set()
        ends_seen = waiting.result(_PATIENCE)

        pushed = Ledger.read(folder).pushed
        monkey.cancel([(i, task.queue) for i, task in pushed.items() if task.kind == "doomed"])
        drained = time.monotonic()
        assert eventually(all_have_ended, within=_PATIENCE), TaskQueue().all_stats()
        crew.dismiss()
        for pid, place in crew.places.items():
            if place is deaf:
                crew.unanswered[pid] += to_worker.muted_at
                crew.cut_off[pid] += to_worker.cut_at

        verdict = Verdict(Ledger.read(folder), crew, monkey, get_client())
        verdict.check()
        now = time.monotonic()
        verdict.figures += [
            ("replies lost", f"{to_worker.lost + to_producer.lost}"),
            ("ends that were waited for and seen", ends_seen),
            ("seconds in all", f"{now - began:.1f}, from the end of chaos {now - drained:.1f}"),
        ]
        record_property("figures", verdict.figures)
        assert not verdict.complaints, f"{verdict}\n{monkey.diary()}"


def producing(url: str, folder: Path, count: int) -> Popen[bytes]:
    return Popen(
        [sys.executable, "-m", "tests.chaos.producers", "outside", str(count)],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "REDIS_URL": url,
            "CHAOS_LEDGER": str(folder),
        },
    )
