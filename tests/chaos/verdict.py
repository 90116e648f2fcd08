"""
The verdict: the ledger held against what Redis has at the end. Complaints are broken promises; figures are printed.

Promised: each accepted task has ended, in one place, as its kind ends, or cancelled if that was asked; each success
has its effect and its result; each death its reason; runs of different tasks with one unique key never overlap;
nothing is left behind in the hashes; nobody waits longer than a lease and a second while a worker is idle.

Not promised, and counted: that an effect happens once. A worker that was stopped for longer than a lease, or that
Redis did not hear in time, may run on beside the one that has taken its task over.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from redis import Redis

from components.services.queues import State, TaskInfo, TaskQueue, keys
from tests.chaos import plan
from tests.chaos.crew import Crew
from tests.chaos.ledger import Ledger, Pushed, Run
from tests.chaos.monkey import DISTURBANCES, Monkey
from tests.chaos.waiting import Countable, without

_FRESH, _NEXT = 0.1, 0.5  # seconds until a task begins, and until the next such, where there is no backlog
_GRACE = 1.0  # seconds above a lease that a task may wait
_PAGE = 500
_SHOWN, _LONGEST = 20, 800  # complaints, and characters of each
_CANCELLED = "components.exceptions.TaskCancelled"
_DIED = "components.exceptions.WorkerDied"


class Verdict:
    """check() fills `complaints` and `figures`."""

    def __init__(self, ledger: Ledger, crew: Crew, monkey: Monkey, redis: Redis) -> None:
        self._ledger, self._crew, self._monkey, self._redis = ledger, crew, monkey, redis
        self._successful = dict(self._listed("successful"))
        self._dead = dict(self._listed("dead"))
        self._clock = time.time() - time.monotonic()  # what the server's clock is ahead of the ledger's
        self.complaints = list(crew.complaints)
        self.figures: list[tuple[str, object]] = []

    def __str__(self) -> str:
        shown = [complaint[:_LONGEST] for complaint in self.complaints[:_SHOWN]]
        return "\n".join([f"{len(self.complaints)} complaints, the first of them:", *shown])

    def check(self) -> None:
        self._check_that_it_was_chaos()
        self._check_that_all_have_ended()
        for task_id, pushed in self._ledger.pushed.items():
            if info := self._ended(task_id):
                self.complaints += self._wrong(pushed, info)
        self._check_what_is_left()
        self._check_uniques()
        self._check_waiting()
        self._count()

    def _check_that_it_was_chaos(self) -> None:
        if left_out := DISTURBANCES - self._monkey.done.keys():
            self.complaints.append(f"The monkey came to none of these: {', '.join(sorted(left_out))}.")

    def _listed(self, state: State) -> Iterator[tuple[str, TaskInfo]]:
        queue = TaskQueue()
        for name in plan.QUEUES:
            offset = 0
            while page := queue.tasks(name, state, offset=offset, limit=_PAGE):
                yield from ((info.id, info) for info in page)
                offset += _PAGE

    def _ended(self, task_id: str) -> TaskInfo | None:
        return self._successful.get(task_id) or self._dead.get(task_id)

    def _check_that_all_have_ended(self) -> None:
        pushed, successful, dead = self._ledger.pushed.keys(), self._successful.keys(), self._dead.keys()
        wrong = {
            "accepted and lost": pushed - successful - dead,
            "both successful and dead": successful & dead,
            "ended, but never pushed": (successful | dead) - pushed,
            "named as the rival of a unique task, but never pushed": self._ledger.strangers,
            "run, but never pushed": self._ledger.runs.keys() - pushed,
        }
        for what, ids in wrong.items():
            if ids:
                self.complaints.append(f"{len(ids)} tasks were {what}, such as {sorted(ids)[:5]}.")

    def _wrong(self, pushed: Pushed, info: TaskInfo) -> Iterator[str]:
        """What is wrong with the end of a task."""
        who, runs = f"The {pushed.kind} task {info.id}", self._ledger.runs[info.id]
        error = info.errors[-1].exception_class_path if info.errors else None
        end = None if info.state == "successful" else error or "no reason"
        allowed = {plan.ENDS.get(pushed.kind)}
        asked = self._monkey.cancelled.get(info.id)
        if asked in ("at once", "asked"):
            allowed = {_CANCELLED} if asked == "at once" else allowed | {_CANCELLED}
        if end not in allowed:
            yield f"{who} ended as {end}, not as {allowed}: {info}; its runs: {runs}"
        last = _last_of_its_worker(info, runs)
        if info.state == "successful" and (last is None or last.how != "E"):
            yield f"{who} is successful without an effect in its last worker: {info}; its runs: {runs}"
        has_failed = pushed.kind == "stuck" or any(run.how == "R" for run in runs)
        if info.state == "dead" and end not in (_CANCELLED, _DIED) and not has_failed:
            yield f"{who} is dead by {end}, and none of its runs failed: {runs}"
        if asked is None and info.id not in self._monkey.resent:
            unsaid = end == _DIED  # an error that no worker has written
            ended = (info.state == "successful") + info.crashes + len(info.errors) - unsaid
            if info.starts != ended:
                yield f"{who} was started {info.starts} times, and {ended} of these ended: {info}"

    def _check_what_is_left(self) -> None:
        dead = self._dead.keys()
        for part in ("tasks", "runs"):
            if (held := self._fields(part)) != dead:
                self.complaints.append(
                    f"The hash {part} is not that of the dead: {len(held - dead)} too many, "
                    f"{len(dead - held)} missing: {sorted(held ^ dead)[:5]}"
                )
        for part in ("errors", "progress"):
            if left := self._fields(part) - dead:
                self.complaints.append(
                    f"The hash {part} has {len(left)} fields that no dead task needs: {sorted(left)[:5]}"
                )
        if left := self._redis.hgetall(keys.BackendKeys("default").uniques):
            self.complaints.append(f"Unique keys were never let go: {left}")
        if left := self._redis.smembers(keys.BackendKeys("default").awaited):
            states = {i.decode(): (self._ended(i.decode()) or i) for i in left}
            self.complaints.append(f"{len(left)} ended tasks are still awaited: {list(states.items())[:5]}")
        results = {
            key.decode().rpartition(":")[2] for key in self._redis.scan_iter("*:result:*", count=5_000)
        }
        if results != self._successful.keys():
            self.complaints.append(
                f"There are {len(results)} results of {len(self._successful)} successful tasks: "
                f"{sorted(results ^ self._successful.keys())[:5]}"
            )
        for name in plan.QUEUES:
            stats = TaskQueue().stats(name)
            if stats.ready or stats.delayed or stats.running or stats.paused:
                self.complaints.append(f"Queue {name} is not at rest: {stats}")
            if (tokens := self._redis.llen(keys.QueueKeys("default", name).wake)) > 1:
                self.complaints.append(f"Queue {name} has {tokens} tokens that wake its workers.")

    def _fields(self, part: str) -> set[str]:
        key = getattr(keys.BackendKeys("default"), part)
        return {task_id.decode() for task_id in self._redis.hkeys(key)}

    def _check_uniques(self) -> None:
        by_key: defaultdict[str, list[tuple[float, float, str]]] = defaultdict(list)
        self._beside = 0
        for info in (*self._successful.values(), *self._dead.values()):
            runs = self._ledger.runs.get(info.id)
            if runs and "key" in info.kwargs:
                last = _last_of_its_worker(info, runs)
                end = last.end if last and last.end and info.state == "successful" else self._ended_at(info)
                by_key[info.kwargs["key"]].append((runs[0].begin, end, info.id))
        for key, lives in by_key.items():
            for (_begin, end, one), (begin, _end, other) in pairwise(sorted(lives)):
                if begin < end:
                    self.complaints.append(
                        f"Tasks {one} and {other} had the unique key {key} and ran at the same time: "
                        f"{self._ledger.runs[one]} {self._ledger.runs[other]}"
                    )
                late = [run.end or 0 for run in self._ledger.runs[one]]
                self._beside += max(late) > begin

    def _ended_at(self, info: TaskInfo) -> float:
        assert info.finished_at
        return info.finished_at.timestamp() - self._clock

    def _check_waiting(self) -> None:
        waits: list[tuple[float, str, str]] = []
        self._from_the_living = 0
        countable = {queue: self._countable(queue) for queue in plan.QUEUES}
        for task_id, pushed in self._ledger.pushed.items():
            info = self._ended(task_id)
            if info and task_id not in self._monkey.resent:
                for begin, end, lease in self._waits(pushed, info):
                    waited = countable[pushed.queue].between(begin, end)
                    waits.append((waited - lease, f"{waited:.2f} s of {end - begin:.2f} s", task_id))
        self._worst = max(waits, default=(0.0, "none", ""))
        self._counted = [round(each.between(0.0, time.monotonic()), 1) for each in countable.values()]
        for over, waited, task_id in waits:
            if over > _GRACE:
                runs = self._ledger.runs[task_id]
                self.complaints.append(
                    f"Task {task_id} waited {waited}, with a worker idle. "
                    f"Its runs: {runs}; {self._ended(task_id)}"
                )

    def _who(self, task_id: str) -> str:
        info = self._ended(task_id)
        return f"task {task_id} after {info.crashes} crashes" if info else "no task"

    def _countable(self, queue: str) -> Countable:
        away = [(begin, end + plan.ASKS_AGAIN + plan.GRACE) for begin, end in self._monkey.away]
        idle = [*self._idle(), *self._without_backlog(queue)]
        return Countable(idle, [*away, *self._monkey.paused[queue]])

    def _idle(self) -> Iterator[tuple[float, float]]:
        """
        When workers were idle, and could take over what others had held: who waits for a reply cannot, nor who was
        without Redis a moment ago.
        """
        recovery = plan.ASKS_AGAIN + plan.GRACE
        for pid, spans in self._ledger.idle.items():
            deaf = [(at, at + plan.SOCKET_TIMEOUT + recovery) for at in self._crew.unanswered[pid]]
            deaf += [(at, at + recovery) for at in self._crew.cut_off[pid]]
            yield from without(spans, deaf)

    def _without_backlog(self, queue: str) -> list[tuple[float, float]]:
        """
        When a worker had a thread to spare for *queue*: tasks of the lowest priority began as soon as they could, and
        all others come before them.
        """
        fresh = []
        for task_id, pushed in self._ledger.pushed.items():
            info, runs = self._ended(task_id), self._ledger.runs.get(task_id)
            if info and runs and pushed.queue == queue and not info.priority:
                waited = runs[0].begin - self._runnable_at(info)
                fresh += [runs[0].begin] if waited < _FRESH else []
        return [(begin, end) for begin, end in pairwise(sorted(fresh)) if end - begin < _NEXT]

    def _runnable_at(self, info: TaskInfo) -> float:
        return (info.run_after or info.enqueued_at).timestamp() - self._clock

    def _waits(self, pushed: Pushed, info: TaskInfo) -> Iterator[tuple[float, float, float]]:
        """From when it could be started, to when it was, with its lease."""
        lease = plan.OWN_LEASE if pushed.kind == "leased" else plan.LEASE
        crew = self._crew
        troubles = [at for pid in _pids(info) for at in crew.troubles[pid] + crew.unanswered[pid]]
        runnable = self._runnable_at(info)
        before: Run | None = None
        for run in self._ledger.runs[info.id]:
            reasons = [at for at in troubles if at < run.begin]
            if before and before.how == "R" and before.end:
                reasons.append(before.end + plan.LATEST_RETRY)
            since = max([runnable, *reasons])
            if before is None or since >= before.begin:
                yield since, run.begin, lease
            else:
                self._from_the_living += 1
            before = run

    def _count(self) -> None:
        runs, monkey = self._ledger.runs, self._monkey
        ended = [*self._successful.values(), *self._dead.values()]
        every = [run for each in runs.values() for run in each]
        reasons = Counter(
            info.errors[-1].exception_class_path.rpartition(".")[2] if info.errors else "no reason"
            for info in self._dead.values()
        )
        effects = Counter(sum(run.how == "E" for run in each) for each in runs.values())
        overlaps = sum(
            before.pid != after.pid and (before.end or 0) > after.begin
            for each in runs.values()
            for before, after in pairwise(each)
        )
        kinds = Counter(pushed.kind for pushed in self._ledger.pushed.values())
        self.figures = [
            ("seed", plan.SEED),
            ("seconds of chaos", f"{plan.SECONDS:g}"),
            ("tasks accepted", len(self._ledger.pushed)),
            ("  of these", _listing(kinds)),
            ("  not stored, since unique", self._ledger.rivals),
            ("successful", len(self._successful)),
            ("dead", f"{len(self._dead)}: {_listing(reasons)}"),
            ("asked to cancel", _listing(Counter(monkey.cancelled.values()))),
            ("runs begun", len(every)),
            ("  without an end", sum(not run.how for run in every)),
            ("  beside another worker's of the same task", overlaps),
            ("tasks taken over", sum(info.crashes > 0 for info in ended)),
            ("  times in all", sum(info.crashes for info in ended)),
            ("  from a worker that lived", self._from_the_living),
            ("failures retried", sum(len(info.errors) for info in self._successful.values())),
            ("effects more than once", sum(n for times, n in effects.items() if times > 1)),
            ("unique tasks that ran on beside the next", self._beside),
            ("worker processes", len(self._crew.places)),
            ("  ended", _listing(self._crew.ends)),
            ("done to them", _listing(monkey.done)),
            ("Redis away", f"{sum(end - begin for begin, end in monkey.away):.1f} s"),
            ("seconds in which waiting counts, by queue", self._counted),
            (
                "worst wait",
                f"{self._worst[1]} ({self._worst[0]:+.2f} s to its lease), {self._who(self._worst[2])}",
            ),
        ]


def _pids(info: TaskInfo) -> list[int]:
    """The processes of the workers that claimed it."""
    return [int(worker_id.rsplit("-", 2)[1]) for worker_id in info.worker_ids]


def _last_of_its_worker(info: TaskInfo, runs: list[Run]) -> Run | None:
    """The run that decided: the last in the process that claimed it last."""
    pid = _pids(info)[-1] if info.worker_ids else 0
    return next((run for run in reversed(runs) if run.pid == pid), None)


def _listing(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common()) or "none"
