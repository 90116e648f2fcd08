"""
Queues: each accepted task ends in exactly one place, as its kind must, whatever happens to workers and Redis.

Two tasks with the same unique key are never there at once, and nothing is left of tasks that have ended.
"""

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from django.core.management import call_command

from components.kit.client import get_client
from components.kit.compat import TaskContext
from components.kit.ids import uuid7
from components.services.queues import NewTask, TaskInfo, TaskQueue, task
from components.services.queues import keys as queue_keys
from tests.chaos.players import Notes, Player, Role, insist, note

QUEUES = ("a", "b")
#: How often each kind comes in a hundred tasks; the rest is "quick".
SHARES = {"nap": 8, "delayed": 8, "urgent": 6, "once": 6, "flaky": 5, "failing": 3, "coroutine": 5}
#: How the tasks of a kind may end, unless they are cancelled: None is success, else the class of the last error.
ENDS = {"failing": "builtins.ValueError", "killer": "components.exceptions.WorkerDied"}
_CANCELLED = "components.exceptions.TaskCancelled"
_BATCH, _KEYS = 20, 6


@task
def quick(task_id: str, **kwargs: str) -> None:
    note("ended", id=task_id)


@task
def nap(task_id: str) -> None:
    time.sleep(0.1)
    note("ended", id=task_id)


@task
async def coroutine(task_id: str) -> None:
    note("ended", id=task_id)


@task(takes_context=True, max_attempts=9)
def flaky(context: TaskContext, task_id: str) -> None:
    if context.attempt < 3:
        raise ValueError("not yet")
    note("ended", id=task_id)


@task(max_attempts=2)
def failing(task_id: str) -> None:
    raise ValueError("never")


@task
def killer(task_id: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def work(player: Player) -> None:
    call_command("runworker", "-c", "4", "--no-reload", verbosity=0)


def produce(player: Player) -> None:
    if not list(player.folder.glob("*.killer")):
        (player.folder / "one.killer").touch()
        push([("killer", new_task("killer", player))])
    while not player.is_over:
        kinds = player.random.choices(
            ["quick", *SHARES], [100 - sum(SHARES.values()), *SHARES.values()], k=_BATCH
        )
        push([(kind, new_task(kind, player)) for kind in kinds])
        player.nap(0.3)


def new_task(kind: str, player: Player) -> NewTask:
    task_id, key = uuid7(), f"key-{player.random.randrange(_KEYS)}"
    function = {"delayed": "quick", "urgent": "quick", "once": "quick"}.get(kind, kind)
    return NewTask(
        id=task_id,
        name=f"{__name__}.{function}",
        args=[task_id],
        kwargs={"key": key} if kind == "once" else {},
        queue=player.random.choice(QUEUES),
        priority=player.random.choice((1, 5)) if kind == "urgent" else 0,
        delay=player.random.uniform(0.05, 3.0) if kind == "delayed" else None,
        unique=key if kind == "once" else None,
    )


def push(tasks: list[tuple[str, NewTask]]) -> None:
    """Push them under the same ids until they are accepted."""
    stored = insist(lambda: TaskQueue().push_many([each for _kind, each in tasks]))
    for (kind, pushed), info in zip(tasks, stored, strict=True):
        if info is not None and info.id == pushed.id:
            note("pushed", id=pushed.id, kind_of_task=kind)


def operate(player: Player) -> None:
    """Send dead tasks again, cancel some that wait, and pause and resume queues."""
    queue = TaskQueue()
    while not player.is_over:
        operate_on(queue, player.random.choice(QUEUES))
        player.nap(1.0)
    for name in QUEUES:
        insist(lambda name=name: queue.resume(name))


def operate_on(queue: TaskQueue, name: str) -> None:
    for info in insist(lambda: list(queue.search(name, "dead", f"{__name__}.failing")))[:2]:
        note("resent", id=info.id)
        insist(lambda id=info.id: queue.resend(name, [id]))
    insist(lambda: queue.pause(name))
    for state in ("ready", "delayed"):
        for info in insist(lambda state=state: list(queue.search(name, state, f"{__name__}.quick")))[:2]:
            note("cancelling", id=info.id)
            answer = insist(lambda id=info.id: queue.cancel(name, [id]))
            if answer.at_once:
                note("cancelled", id=info.id)
    insist(lambda: queue.resume(name))


ROLES = {
    "worker": Role(2, work, is_daemon=True),
    "producer": Role(1, produce),
    "operator": Role(1, operate),
}


def is_settled() -> bool:
    return not any(stats.ready + stats.delayed + stats.running for stats in TaskQueue().all_stats())


def judge(notes: Notes) -> Iterator[str]:
    queue = TaskQueue()
    if len(notes["pushed"]) < 300:
        yield f"Only {len(notes['pushed'])} tasks were accepted: nothing was tested."
    done = {each["id"] for each in notes["ended"]}
    asked, cancelled, resent = (
        {each["id"] for each in notes[kind]} for kind in ("cancelling", "cancelled", "resent")
    )
    infos: dict[str, TaskInfo] = {}
    for each in notes["pushed"]:
        task_id, kind = each["id"], each["kind_of_task"]
        info = queue.get(task_id)
        if info is None or info.state not in ("successful", "dead"):
            yield f"{kind} {task_id} was accepted, and has not ended: {info}"
            continue
        infos[task_id] = info
        end = info.errors[-1].exception_class_path if info.state == "dead" else None
        if end != ENDS.get(kind) and not (task_id in asked and end == _CANCELLED):
            yield f"{kind} {task_id} has ended as {end}: {info}"
        if end is None and task_id not in done:
            yield f"{kind} {task_id} is successful, and no worker has done it: {info}"
        if task_id in cancelled - resent and end != _CANCELLED:
            yield f"{kind} {task_id} was cancelled at once, and has ended as {end}: {info}"
    by_key: defaultdict[str, list[Any]] = defaultdict(list)
    for info in infos.values():
        if "key" in info.kwargs:
            by_key[info.kwargs["key"]].append((info.enqueued_at, info.finished_at, info.id))
    for key, lives in by_key.items():
        for (_, end, one), (begin, _, other) in pairwise(sorted(lives)):
            if begin < end:
                yield f"{one} and {other} had the unique key {key} at the same time."
    yield from judge_what_is_left()


def judge_what_is_left() -> Iterator[str]:
    redis: Any = get_client()
    keys = queue_keys.BackendKeys("default")
    dead = {
        id_.decode()
        for name in QUEUES
        for id_ in redis.zrange(queue_keys.QueueKeys("default", name).dead, 0, -1)
    }
    for part in ("tasks", "runs"):
        if (held := {id_.decode() for id_ in redis.hkeys(getattr(keys, part))}) != dead:
            yield f"The hash {part} is not that of the dead: {sorted(held ^ dead)[:5]}"
    for part in ("errors", "progress"):
        if left := {id_.decode() for id_ in redis.hkeys(getattr(keys, part))} - dead:
            yield f"The hash {part} has fields that no dead task needs: {sorted(left)[:5]}"
    if left := redis.hgetall(keys.uniques):
        yield f"Unique keys were never let go: {left}"
    if left := redis.smembers(keys.awaited):
        yield f"Tasks that have ended are still awaited: {left}"


def figures(notes: Notes) -> str:
    pushed, cancelled, resent = (len(notes[kind]) for kind in ("pushed", "cancelled", "resent"))
    dead = sum(stats.dead for stats in TaskQueue().all_stats())
    return f"{pushed} accepted, {dead} dead, {cancelled} cancelled, {resent} sent again"
