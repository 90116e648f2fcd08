"""
The report of task queues: what waits, what runs, which tasks and workers need somebody; the figures of queues and
workers; and finding queues by name, tasks by id or by the name of what they run, and periodic tasks.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, get_args

from django.core.checks import CheckMessage, Error, Warning
from django.utils.translation import gettext, gettext_lazy, ngettext, ngettext_lazy

from components.conf import queue_options
from components.exceptions import UnknownTask
from components.formatting import duration, grouped, legible
from components.kit.compat import Task
from components.kit.declarations import import_tasks, task_modules
from components.kit.decoding import instant_of, text_of
from components.kit.ids import id_of, known_sites
from components.kit.readings import Ask, Event, Family, Gauges
from components.kit.scripts import Script
from components.reports import (
    Card,
    CardReading,
    FinderReading,
    Found,
    Line,
    Link,
    Past,
    best,
    lines_about,
)
from components.services.queues.backend import loaded_with_apps, redis_aliases, resolve
from components.services.queues.facts import (
    QueueStats,
    State,
    WorkerInfo,
    from_us,
    late_queues,
    saturated,
    taking,
    unserved,
)
from components.services.queues.formats import read_sizes, read_worker
from components.services.queues.keys import BackendKeys, QueueKeys
from components.services.queues.periodic_tasks import declared, late_ticks, tick_infos
from components.services.queues.queue import FIND, TaskQueue
from components.services.queues.ticks import Ticks

GAUGE = Script("queues/gauge")

PAST = Past(
    "tasks:successful",
    ngettext_lazy(
        "%(count)s task succeeded in the last %(span)s",
        "%(count)s tasks succeeded in the last %(span)s",
        "number",
    ),
)

_ENDED = "components_tasks_ended", "Runs of tasks that have ended, by queue.", "queue"
_RUNS = "components_task_runs", "Runs of tasks that have ended, by task.", "task"

EVENTS = (
    Event("tasks:enqueued", "components_tasks_enqueued", "Tasks that were stored.", "queue"),
    Event("tasks:successful", *_ENDED, (("outcome", "successful"),)),
    Event("tasks:retried", *_ENDED, (("outcome", "retried"),)),
    Event("tasks:failed", *_ENDED, (("outcome", "failed"),)),
    Event("tasks:expired", *_ENDED, (("outcome", "expired"),)),
    Event("runs:successful", *_RUNS, (("outcome", "successful"),)),
    Event("runs:retry", *_RUNS, (("outcome", "retried"),)),
    Event("runs:dead", *_RUNS, (("outcome", "failed"),)),
    Event("runs:expired", *_RUNS, (("outcome", "expired"),)),
    Event("tasks:run", "components_task_run_seconds", "How long runs took.", "task", is_histogram=True),
    Event(
        "tasks:wait",
        "components_task_wait_seconds",
        "How long runs waited, from the instant at which their task could run.",
        "task",
        is_histogram=True,
    ),
)

_PATIENCE = 10.0  # seconds that a task may wait for a free slot: busy workers are no trouble by themselves
_EACH = 3  # questions of the card for each alias
_MOST = 1_000  # queues of an alias that a search looks at, as the card does
_LOOKED_AT = 100  # tasks of a queue, in each state, whose names the doctor looks up
_WORKERS = Link("workers", gettext_lazy("Workers"))
_STATES: tuple[State, ...] = ("ready", "delayed", "dead")


def card() -> CardReading:
    """Look at the queues, workers and periodic tasks of all aliases."""
    aliases = redis_aliases()
    entries = {alias: declared(alias) for alias in aliases}
    names = {alias: [entry.name for entry in entries[alias]] for alias in aliases}
    answers = yield [
        ask
        for alias in aliases
        for ask in (
            ask_state(alias),
            Ticks(alias).ask(names[alias]),
            Ask.of("scard", BackendKeys(alias).names),
        )
    ]
    lines, of_all, serving, number = list[Line](), list[QueueStats](), list[WorkerInfo](), 0
    for alias, state, ticks, of_alias in zip(
        aliases, answers[::_EACH], answers[1::_EACH], answers[2::_EACH], strict=True
    ):
        queues, workers, limited = read_state(alias, state)
        now, last = Ticks(alias).read(names[alias], ticks)
        of_all += queues
        serving += taking(workers)
        number += of_alias
        dead = sorted((queue for queue in queues if queue.dead), key=lambda queue: -queue.dead)
        lines += [
            *_strangers(alias, workers),
            *lines_about(_longest_first(unserved(queues, workers)), partial(_unserved, alias)),
            *_broken(alias, workers),
            *_saturated(alias, _longest_first(saturated(queues, workers))),
            *lines_about(
                _longest_first(each for each in queues if each.paused and each.ready), partial(_paused, alias)
            ),
            *_silent(alias, [worker for worker in workers if not worker.alive]),
            *lines_about(late_queues(queues, now), partial(_late, alias, now)),
            *_late_ticks(alias, len(late_ticks(tick_infos(entries[alias], now, last), now))),
            *lines_about(dead, partial(_dead, alias)),
            *lines_about([each for each in queues if each.trimmed], partial(_trimmed, alias)),
            *lines_about([each for each in queues if each.retrying], partial(_retrying, alias)),
            *lines_about([*limited.items()], _limited),
        ]
    return _card(of_all, serving, number, lines)


def _card(
    queues: Sequence[QueueStats], serving: Sequence[WorkerInfo], number: int, lines: list[Line]
) -> Card:
    """Return the card of all aliases, which have *number* queues; of these, a thousand of each alias were read."""
    ready, dead, delayed = (
        sum(getattr(queue, state) for queue in queues) for state in ("ready", "dead", "delayed")
    )
    oldest = max((queue.oldest_age or 0.0 for queue in queues if queue.ready), default=None)
    busy, slots = (sum(getattr(each, of) for each in serving) for of in ("running", "concurrency"))
    slots_in_use = gettext("%(busy)s of %(all)s") % {"busy": grouped(busy), "all": grouped(slots)}
    in_all = grouped(number)
    if number > len(queues):
        all_and_some = {"all": in_all, "some": grouped(len(queues))}
        in_all = gettext("%(all)s; the figures are of %(some)s of them") % all_and_some
    return Card(
        ready,
        ngettext("task waits", "tasks wait", ready),
        [
            (gettext("Oldest waits"), duration(oldest)),
            (gettext("Busy slots"), slots_in_use),
            (gettext("Delayed"), grouped(delayed)),
            (gettext("Dead"), grouped(dead)),
            (gettext("Queues"), in_all),
            (gettext("Workers"), grouped(len(serving))),
        ],
        lines,
    )


def _longest_first(queues: Iterable[QueueStats]) -> list[QueueStats]:
    return sorted(queues, key=lambda queue: -(queue.oldest_age or 0.0))


def _strangers(alias: str, workers: Iterable[WorkerInfo]) -> Iterator[Line]:
    known = ["", *known_sites()]
    hosts = {worker.host for worker in workers if worker.alive and worker.site not in known}
    if hosts:
        text = gettext("Workers of another project or environment, on %(hosts)s, take tasks of %(alias)s.")
        advice = gettext(
            "Give each project a prefix or a database of its own. If they do belong to this site, give all its "
            "processes the same SECRET_KEY."
        )
        yield Line("E111", text % {"hosts": _listed(hosts), "alias": alias}, _WORKERS, advice=advice)


def _silent(alias: str, lost: Sequence[WorkerInfo]) -> Iterator[Line]:
    if lost:
        text = ngettext(
            "%(count)s worker or poller fell silent without taking leave: %(names)s.",
            "%(count)s workers or pollers fell silent without taking leave: %(names)s.",
            len(lost),
        )
        said = text % {"count": grouped(len(lost)), "names": _listed(worker.id for worker in lost)}
        advice = gettext(
            "They were killed, hang, or cannot reach Redis: look into their logs. Others have taken over their "
            "tasks. They are forgotten after a day."
        )
        yield Line("W114", said, _WORKERS, advice=advice)


def _unserved(alias: str, queue: QueueStats) -> Line:
    text = ngettext(
        "%(count)s task waits in the queue %(queue)s, for %(age)s, and no worker serves this queue.",
        "%(count)s tasks wait in the queue %(queue)s, the oldest for %(age)s, and no worker serves this queue.",
        queue.ready,
    )
    command = f"manage.py runworker --backend {alias} -q {legible(queue.name)}"
    page = _tasks(gettext("Waiting tasks"), alias, queue.name, "ready")
    return Line("E112", text % _about(queue, queue.ready), page, command=command)


def _paused(alias: str, queue: QueueStats) -> Line:
    text = ngettext(
        "The queue %(queue)s is paused: %(count)s task waits in it, for %(age)s.",
        "The queue %(queue)s is paused: %(count)s tasks wait in it, the oldest for %(age)s.",
        queue.ready,
    )
    page = _tasks(gettext("Waiting tasks"), alias, queue.name, "ready")
    mend = Link("resume", gettext("Resume"), alias=alias, queue=queue.name)
    return Line("W130", text % _about(queue, queue.ready), page, mend)


def _saturated(alias: str, queues: Sequence[QueueStats]) -> Iterator[Line]:
    if queues and (oldest := queues[0].oldest_age or 0.0) >= _PATIENCE:
        waiting = sum(queue.ready for queue in queues)
        text = ngettext(
            "All slots of the workers for %(queues)s are busy, and %(count)s task waits, for %(age)s.",
            "All slots of the workers for %(queues)s are busy, and %(count)s tasks wait, the oldest for %(age)s.",
            waiting,
        )
        page = _tasks(gettext("Waiting tasks"), alias, queues[0].name, "ready")
        names = _listed(queue.name for queue in queues)
        said = text % {"queues": names, "count": grouped(waiting), "age": duration(oldest)}
        yield Line("W126", said, page, command=f"manage.py runworker --backend {alias}")


def _late(alias: str, now: datetime, queue: QueueStats) -> Line:
    text = gettext("Delayed tasks of the queue %(queue)s are late: the first was due %(age)s ago.")
    age = duration((now - (queue.next_due_at or now)).total_seconds())
    page = _tasks(gettext("Delayed tasks"), alias, queue.name, "delayed")
    command = f"manage.py pollqueue --backend {alias}"
    return Line("E115", text % {"queue": legible(queue.name), "age": age}, page, command=command)


def _late_ticks(alias: str, number: int) -> Iterator[Line]:
    if number:
        text = ngettext("%(count)s periodic task is late.", "%(count)s periodic tasks are late.", number)
        page = Link("periodic", gettext("Periodic tasks"))
        said = text % {"count": grouped(number)}
        yield Line("E116", said, page, command=f"manage.py pollqueue --backend {alias}")


def _dead(alias: str, queue: QueueStats) -> Line:
    text = ngettext(
        "%(count)s task of the queue %(queue)s has failed for good.",
        "%(count)s tasks of the queue %(queue)s have failed for good.",
        queue.dead,
    )
    page = Link("failures", gettext("Dead tasks"), alias=alias, queue=queue.name)
    which = {"alias": alias, "queue": queue.name, "state": "dead", "scope": "all"}
    return Line(
        "W127", text % _about(queue, queue.dead), page, Link("resend", gettext("Send them again"), **which)
    )


def _broken(alias: str, workers: Iterable[WorkerInfo]) -> Iterator[Line]:
    if names := {name for worker in workers if worker.alive for name in worker.broken}:
        text = gettext(
            "Workers or pollers of %(alias)s cannot import %(names)s: tasks that are declared there do not run, and "
            "periodic ones do not tick."
        )
        advice = gettext("Their logs say why. Correct it, and restart them.")
        said = text % {"alias": alias, "names": _listed(names)}
        yield Line("E120", said, _WORKERS, advice=advice)


def _trimmed(alias: str, queue: QueueStats) -> Line:
    text = ngettext(
        "The queue %(queue)s was too full of dead tasks, so %(count)s of them was thrown away; it keeps %(most)s.",
        "The queue %(queue)s was too full of dead tasks, so %(count)s of them were thrown away; it keeps %(most)s.",
        queue.trimmed,
    )
    advice = gettext("Look at what fails, or raise dead_limit. This is forgotten after a day.")
    about = _about(queue, queue.trimmed) | {"most": grouped(queue_options(alias).dead_limit)}
    return Line("W134", text % about, _tasks(gettext("Dead tasks"), alias, queue.name, "dead"), advice=advice)


def _retrying(alias: str, queue: QueueStats) -> Line:
    text = ngettext(
        "%(count)s task of the queue %(queue)s did not succeed, and will be tried again.",
        "%(count)s tasks of the queue %(queue)s did not succeed, and will be tried again.",
        queue.retrying,
    )
    page = _tasks(gettext("Delayed tasks"), alias, queue.name, "delayed")
    return Line("W135", text % _about(queue, queue.retrying), page)


def _limited(limited: tuple[str, int]) -> Line:
    limit, count = limited
    text = ngettext(
        "%(count)s task waits for room under the limit %(limit)s.",
        "%(count)s tasks wait for room under the limit %(limit)s.",
        count,
    )
    advice = gettext("The page Semaphores says who holds it.")
    return Line("W136", text % {"count": grouped(count), "limit": legible(limit)}, advice=advice)


def _about(queue: QueueStats, count: int) -> dict[str, str]:
    return {"count": grouped(count), "queue": legible(queue.name), "age": duration(queue.oldest_age)}


def _tasks(label: str, alias: str, queue: str, state: str) -> Link:
    return Link("tasks", label, alias=alias, queue=queue, state=state)


def _listed(names: Iterable[str], most: int = 5) -> str:
    found = sorted(names)
    more = f" (+{grouped(len(found) - most)})" if len(found) > most else ""
    return ", ".join(map(legible, found[:most])) + more


def examine() -> Iterator[CheckMessage]:
    """Yield aliases without workers, and tasks that this project does not have. Raises RedisUnavailable."""
    for name, error in import_tasks().items():
        yield Error(
            f"{name} cannot be imported, so periodic tasks that it declares do not tick: {error!r}.",
            hint="Correct it, and restart the workers.",
            id="components.E120",
        )
    for alias in redis_aliases():
        queues, workers = TaskQueue(alias).overview()
        if not unserved(queues, workers) and not any(
            each.alive and each.kind == "worker" for each in workers
        ):
            yield Warning(
                f"No worker runs for TASKS[{alias!r}], so tasks that are enqueued will wait.",
                hint=f"Run `manage.py runworker --backend {alias}`.",
                id="components.W113",
            )
        for queue in queues:
            yield from _unknown(alias, queue.name)


def _unknown(alias: str, queue: str) -> Iterator[CheckMessage]:
    unknown = dict[str, str]()
    for state in _STATES:
        for info in TaskQueue(alias).tasks(queue, state, limit=_LOOKED_AT):
            if info.name and info.name not in unknown:
                where = f"A task in the queue {queue!r} of TASKS[{alias!r}] is {state}"
                try:
                    resolve(info.name)
                except UnknownTask as error:
                    unknown[info.name] = f"{where}. {error}"
                except Exception as error:  # noqa: BLE001  (importing a module may raise anything)
                    unknown[info.name] = (
                        f"{where}, and importing the module of {info.name!r} raises {error!r}."
                    )
    for said in unknown.values():
        yield Warning(
            said,
            hint="If it was renamed, keep its old name in its old module, as in `old_name = new_name`, until no task "
            "has it any more. If it belongs to another project, give each project its own "
            'COMPONENTS["PREFIX"]. If nobody needs it, cancel or delete it on the page Queues of the admin.',
            id="components.W117",
        )


def ask_state(alias: str) -> Ask:
    """Return the question for the queues and workers of *alias*, at most a thousand of each."""
    keys = QueueKeys(alias, "")
    return Ask(keys.names, partial(GAUGE.put, keys=keys))


def read_state(
    alias: str, answer: Sequence[Any]
) -> tuple[list[QueueStats], list[WorkerInfo], dict[str, int]]:
    """
    Return the queues, by name, and the workers of *alias* from the answer to ask_state(), and how many tasks wait
    under which limit.
    """
    clock, sizes, seen, limited = answer
    queues = [read_sizes(text_of(name), found) for name, found in zip(sizes[::2], sizes[1::2], strict=True)]
    lease = timedelta(seconds=queue_options(alias).lease)
    workers = [
        read_worker(
            text_of(worker_id), about or b"", started, None, instant_of(float(at)), from_us(clock), lease
        )
        for worker_id, at, (about, started) in zip(seen[::3], seen[1::3], seen[2::3], strict=True)
    ]
    full = {text_of(name): int(count) for name, count in zip(limited[::2], limited[1::2], strict=True)}
    return sorted(queues, key=lambda queue: queue.name), workers, full


def gauges() -> Gauges:
    """Count the tasks and workers of each alias."""
    tasks = Family("components_queue_tasks", "Tasks of a queue, by their state.")
    oldest = Family(
        "components_queue_oldest_seconds", "For how long the oldest ready task waits; 0 if none does."
    )
    paused = Family("components_queue_paused", "1 if the queue is paused.")
    workers = Family("components_workers", "Processes that are alive, by what they do.")
    slots = Family("components_worker_slots", "Tasks that the living workers can run at a time.")
    running = Family("components_worker_running", "Tasks that the living workers run.")
    aliases = redis_aliases()
    answers = yield [ask_state(alias) for alias in aliases]
    for alias, answer in zip(aliases, answers, strict=True):
        queues, seen, _full = read_state(alias, answer)
        for stats in queues:
            for state in get_args(State):
                tasks.add(getattr(stats, state), alias=alias, queue=stats.name, state=state)
            oldest.add(stats.oldest_age or 0.0, alias=alias, queue=stats.name)
            paused.add(stats.paused, alias=alias, queue=stats.name)
        totals = defaultdict[str, list[int]](lambda: [0, 0, 0])
        for info in seen:
            if info.alive:
                for number, value in enumerate((1, info.concurrency, info.running)):
                    totals[info.kind][number] += value
        for kind in sorted({"worker", "poller", *totals}):
            for family, value in zip((workers, slots, running), totals[kind], strict=True):
                family.add(value, alias=alias, kind=kind)
    return [tasks, oldest, paused, workers, slots, running]


def find(text: str) -> FinderReading:
    """Find queues, workers, the task with the id *text*, and declared tasks of modules that are loaded here."""
    aliases = redis_aliases()
    answers = yield [
        ask
        for keys in map(BackendKeys, aliases)
        for ask in (
            Ask.of("srandmember", keys.names, _MOST),
            Ask.of("sismember", keys.names, text),
            Ask.of("zrevrange", keys.workers, 0, _MOST - 1),
            Ask(keys.tasks, partial(FIND.put, keys=keys, id=id_of(text))),
        )
    ]
    found = list[Found]()
    of_aliases = zip(*[iter(answers)] * 4, strict=True)
    for alias, (names, is_there, seen, stored) in zip(aliases, of_aliases, strict=True):
        record, _run, _errors, _progress, result = stored
        if record or result:
            found.append(Found(Link("task", legible(text), alias=alias, id=text), gettext("Task")))
        queues = best([*map(text_of, names), *([text] if is_there else [])], text)
        found += [Found(Link("tasks", legible(name), alias=alias, queue=name)) for name in queues]
        for name in best(map(text_of, seen), text):
            found.append(Found(Link("workers", legible(name), q=name), gettext("Worker")))
        for name in best((entry.name for entry in declared(alias)), text):
            found.append(Found(Link("periodic", legible(name)), gettext("Periodic task")))
        declared_in = {task.module_path: task.queue_name for task in loaded_tasks() if task.backend == alias}
        for name in best(declared_in, text):
            page = Link("tasks", legible(name), alias=alias, queue=declared_in[name], task=name)
            found.append(Found(page, gettext("Tasks by name")))
    return found


def loaded_tasks() -> Iterator[Any]:
    """Yield the tasks in the known modules that this process has imported."""
    for name in {*task_modules(), *loaded_with_apps}:
        module = sys.modules.get(name)
        yield from (each for each in vars(module).values() if isinstance(each, Task)) if module else ()
