"""The task queue in plain Python, as it should behave: what test_queues_model.py holds the real one against."""

from __future__ import annotations

from dataclasses import dataclass, field

from components.services.queues import State

QUEUES = ("high", "low")
MAX_CRASHES = 2


@dataclass
class Task:
    """What the model knows of a task."""

    id: str
    queue: str
    priority: int
    unique: str | None
    state: State | None
    #: Microsecond at which it became, or becomes, runnable.
    runnable: int = 0
    starts: int = 0
    crashes: int = 0
    failures: int = 0
    token: str = ""
    is_cancelled: bool = False
    has_run: bool = False
    is_expired: bool = False
    is_due: bool = False
    is_awaited: bool = False
    #: Matured before it was ready, where such tasks go first.
    goes_first: bool = False

    @property
    def place(self) -> tuple[int, bool, int, str]:
        return (-self.priority, not self.goes_first, self.runnable // 1_000, self.id)

    @property
    def is_unfinished(self) -> bool:
        return self.state in ("ready", "delayed", "running")

    @property
    def story(self) -> tuple[str, int, int, bool]:
        return (self.id, self.starts, self.crashes, self.is_cancelled)

    def delay(self, *, due_first: bool) -> None:
        self.state, self.token, self.is_due, self.goes_first = "delayed", "", False, due_first

    def end(self, state: State | None) -> None:
        self.state, self.token, self.is_awaited, self.has_run = state, "", False, True

    def take_over(self) -> None:
        """The lease has ended."""
        self.crashes += bool(self.token)
        self.token = ""
        if self.is_cancelled or self.crashes >= MAX_CRASHES:
            self.end("dead")
        else:
            self.state = "ready"

    def ack(self, outcome: str, *, due_first: bool) -> None:
        if outcome == "successful":
            self.end("successful")
            return
        self.failures += 1
        if outcome == "retry" and not self.is_cancelled:
            self.delay(due_first=due_first)
        else:
            self.end("dead")

    def release(self, delay: float, *, due_first: bool) -> None:
        self.token = ""
        self.starts -= 1
        if self.is_cancelled:
            self.is_expired = True
            return
        self.has_run = bool(self.starts or self.crashes)
        if delay:
            self.delay(due_first=due_first)
        else:
            self.state = "ready"


@dataclass
class Model:
    tasks: dict[str, Task] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    ticks: dict[str, int] = field(default_factory=dict)

    def of(self, queue: str, state: State) -> list[Task]:
        return [task for task in self.tasks.values() if task.queue == queue and task.state == state]

    def holder(self, unique: str | None) -> Task | None:
        found = [
            task for task in self.tasks.values() if unique and task.unique == unique and task.is_unfinished
        ]
        assert len(found) <= 1
        return found[0] if found else None

    def move(self, queue: str) -> None:
        for task in self.of(queue, "delayed"):
            if task.is_due:
                task.state = "ready"
        for task in self.of(queue, "running"):
            if task.is_expired:
                task.take_over()

    def claim(self, want: int, token: str) -> list[str]:
        for queue in QUEUES:
            self.move(queue)
        ready = [
            task
            for queue in QUEUES
            if queue not in self.paused
            for task in sorted(self.of(queue, "ready"), key=lambda task: task.place)
        ]
        for task in ready[:want]:
            task.state, task.token, task.is_expired, task.has_run = "running", token, False, True
            task.starts += 1
        return [task.id for task in ready[:want]]
