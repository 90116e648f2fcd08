"""
Show queues, workers and periodic tasks: for people as tables, for programs as JSON.

Like the control room, it needs a few round trips for each alias, and changes nothing. The keys of the JSON are stable
(docs/queues.md): new ones may be added, but none is removed or changes its meaning without another format number.
"""

import json
from argparse import ArgumentParser
from dataclasses import fields
from typing import Any

from django.core.management.base import BaseCommand

from components.management.output import age, document, instant, table
from components.services.queues import QueueStats, TaskQueue, WorkerInfo
from components.services.queues.backend import redis_aliases
from components.services.queues.periodic_tasks import TickInfo, overview
from components.services.queues.worker.options import find_backend
from components.workers.running import command_errors

FORMAT = 1
#: What the JSON has of a worker; of a queue, it has all.
_WORKER = ["id", "kind", "host", "pid", "queues", "concurrency", "running", "started_at", "seen_at", "alive"]


class Command(BaseCommand):
    help = (
        "Shows the queues of the TASKS aliases on Redis: sizes, workers, periodic tasks. "
        "Exit codes: 0; 2 if Redis does not answer, or if the alias is wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--backend", metavar="ALIAS", help="Only this alias in TASKS (default: all on Redis)."
        )
        parser.add_argument("--json", action="store_true", help="Write JSON; the manual lists its keys.")

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = options["backend"]
        aliases = [find_backend(wanted).alias] if wanted else redis_aliases()
        with command_errors():
            known = {alias: (*TaskQueue(alias).overview(), overview(alias)) for alias in aliases}
        if options["json"]:
            backends = {alias: _document(*facts) for alias, facts in known.items()}
            self.stdout.write(json.dumps({"format": FORMAT, "backends": backends}, indent=2))
            return
        for alias, facts in known.items():
            self.stdout.write("\n".join(_text(alias, *facts)))
        if not known:
            self.stdout.write("No TASKS alias uses components.tasks.RedisBackend.")


def _document(
    queues: list[QueueStats], workers: list[WorkerInfo], periodic: list[TickInfo]
) -> dict[str, list[dict[str, Any]]]:
    return {
        "queues": [document(queue, *(each.name for each in fields(queue))) for queue in queues],
        "workers": [
            {**document(worker, *_WORKER), "quiet": worker.is_quiet, "order": worker.order or None}
            for worker in workers
        ],
        "periodic": [
            {
                **document(info.periodic, "name", "missed"),
                **document(info, "last_at", "next_at"),
                "task": info.periodic.task.module_path,
                "schedule": str(info.periodic.schedule),
                "queue": info.periodic.task.queue_name,
                "paused": info.is_paused,
            }
            for info in periodic
        ],
    }


def _text(
    alias: str, queues: list[QueueStats], workers: list[WorkerInfo], periodic: list[TickInfo]
) -> list[str]:
    return [
        f"{alias}: queues",
        *table(
            [
                {
                    "queue": queue.name,
                    ">ready": queue.ready,
                    ">oldest": age(queue.oldest_age),
                    ">delayed": queue.delayed,
                    "next due": instant(queue.next_due_at),
                    ">running": queue.running,
                    ">dead": queue.dead,
                    ">successful": queue.successful,
                    ">cut off": queue.cut_off,
                    "state": "paused" if queue.paused else "active",
                }
                for queue in queues
            ]
        ),
        f"{alias}: workers",
        *table(
            [
                {
                    "worker": worker.id,
                    "kind": worker.kind,
                    ">running": worker.running,
                    ">of": worker.concurrency,
                    "state": _state(worker),
                    "last seen": instant(worker.seen_at),
                    "queues": ", ".join(worker.queues),
                }
                for worker in workers
            ]
        ),
        f"{alias}: periodic tasks",
        *table(
            [
                {
                    "task": info.periodic.task.module_path,
                    "schedule": info.periodic.schedule,
                    "next": "paused" if info.is_paused else instant(info.next_at),
                    "last": instant(info.last_at),
                    "if missed": info.periodic.missed,
                    "queue": info.periodic.task.queue_name,
                }
                for info in periodic
            ]
        ),
    ]


def _state(worker: WorkerInfo) -> str:
    if not worker.alive:
        return "lost"
    if worker.order == "stop":
        return "asked to stop"
    if worker.is_quiet:
        return "quiet"
    return "asked to be quiet" if worker.order else "alive"
