"""
A site with a great deal of everything, made by the public calls of each service: fill() makes it, and NAMES says what
its pages can be asked about.

It is as lopsided as a real one: one queue has half of all tasks, a family of counters has a hundred members, a chat
is long, a book is large, and the rest is spread evenly.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import call_command

from benchmarks import log_lines
from benchmarks.harness import say
from benchmarks.queues import succeeded
from components.kit.compat import task
from components.services.autocomplete import AddressBook
from components.services.chat import Chat
from components.services.counters import count, flush, measure
from components.services.geo import import_places
from components.services.locks import lock
from components.services.locks.named import key_of
from components.services.logs import Aggregation
from components.services.mailboxes import Mailbox
from components.services.queues import (
    Consumer,
    Finished,
    NewTask,
    Progress,
    TaskFailure,
    TaskQueue,
    every,
    periodic,
)
from components.services.queues.formats import write_errors
from components.services.queues.periodic_tasks import declared
from components.services.rows import Loader, RowCache, Shape, Stored, name_and_key
from components.services.semaphores import Semaphore

AT_ONCE = 10_000
CLAIMED = 1_000  # the most tasks that one request may want
LARGEST = "mail"
#: The id of a task that is not dead, for pages about such tasks.
READY = "ready id"
#: The most dead tasks that a queue keeps by default.
DEAD = 10_000
LEASE = 3_600.0  # seconds, so that nothing ends while pages are measured
WORKERS, RUNNING, PERIODIC = 40, 100, 50
JOBS = [f"shop.tasks.{name}" for name in ("charge", "ship", "thank", "bill", "remind", "index", "thumbnail")]
ERRORS = [
    *(("builtins.KeyError", f"KeyError: {number}") for number in range(40)),
    ("builtins.ConnectionRefusedError", "ConnectionRefusedError: [Errno 111] Connection refused"),
    ("builtins.TimeoutError", "TimeoutError: The card service did not answer within 10 s"),
]
TRACEBACK = "Traceback (most recent call last):\n" + "".join(
    f'  File "/srv/shop/tasks.py", line {line}, in charge\n    pay(card, amount, idempotency_key=key)\n'
    for line in range(12)
)
SHAPE = Shape([("name", "text"), ("stock", "integer"), ("description", "text")])
#: Of the log: few days with all their hours.
DAYS = 14

_queue = TaskQueue()


@task
def sweep(number: int) -> None: ...


for _number in range(PERIODIC):
    periodic(every(minutes=5 + _number), args=[_number])(sweep)


def fill(options: Namespace) -> dict[str, str]:
    """Fill Redis, and return what pages are asked about by the names of their parameters."""
    names = {
        "alias": _queue.alias,
        "queue": LARGEST,
        "field": "argument",
        "periodic": declared(_queue.alias)[0].name,
    }
    parts: dict[str, Callable[[Namespace], dict[str, str]]] = {
        "tasks": fill_queues,
        "counters": fill_counters,
        "rows": fill_rows,
        "chats": fill_chats,
        "mailboxes": fill_mailboxes,
        "address books": fill_books,
        "locks and semaphores": fill_locks,
        "logs": fill_logs,
    }
    for what, part in parts.items():
        say(f"filling: {what}")
        names |= part(options)
    say("")
    return names


def fill_queues(options: Namespace) -> dict[str, str]:
    """Half of the tasks are in the largest queue, a tenth of those delayed; some were run, and some are running."""
    for number in range(WORKERS):
        Consumer().renew([LARGEST, *(f"queue-{each}" for each in range(number, options.queues, WORKERS))])
    dead = min(DEAD, options.tasks // 50)
    push(new_tasks(LARGEST, dead))
    [task_id, *_] = run_tasks(dead, fail)
    push(new_tasks(LARGEST, CLAIMED))
    run_tasks(CLAIMED, lambda step: succeeded(step))
    push(new_tasks(LARGEST, RUNNING, lease=LEASE))
    run_tasks(RUNNING, lambda step: [])
    half = options.tasks // 2
    push(new_tasks(LARGEST, half * 9 // 10))
    push(new_tasks(LARGEST, half // 10, delay=3_600.0))
    [ready_id] = _queue.ids(LARGEST, "ready", limit=1)
    others = options.queues - 1
    for number in range(others):
        push(new_tasks(f"queue-{number}", half // others))
    return {"id": task_id, "state": "dead", READY: ready_id}


def new_tasks(
    queue: str, count: int, delay: float | None = None, lease: float | None = None
) -> Iterator[NewTask]:
    return (
        NewTask(
            name=JOBS[number % len(JOBS)],
            args=[number],
            kwargs={"card": f"card-{number}", "amount": number % 9_000},
            queue=queue,
            delay=delay and delay + number % 3_600,
            lease=lease,
        )
        for number in range(count)
    )


def push(tasks: Iterator[NewTask]) -> None:
    while some := [each for _, each in zip(range(AT_ONCE), tasks, strict=False)]:
        _queue.push_many(some)


def run_tasks(count: int, finish: Callable[[Any], list[Finished]]) -> list[str]:
    """Claim tasks of the largest queue, and hand in what *finish* makes of them. Return their ids."""
    consumer, ids, finished = Consumer(), list[str](), list[Finished]()
    consumer.renew([LARGEST])
    while len(ids) < count:
        want = min(CLAIMED, count - len(ids))
        step = consumer.advance(consumer.request({LARGEST: want}, want, finished))
        ids += [each.id for each in step.claimed]
        finished = finish(step)
        if not finished:
            for each in step.claimed:
                consumer.progress(each, Progress(40, 100, "card 40 of 100"))
    consumer.advance(consumer.request({LARGEST: 0}, 0, finished))
    return ids


def fail(step: Any) -> list[Finished]:
    found = []
    for number, each in enumerate(step.claimed):
        path, message = ERRORS[number % len(ERRORS)]
        found.append(
            Finished(each, "dead", step.now, write_errors([TaskFailure(path, f"{TRACEBACK}{message}\n")] * 3))
        )
    return found


def fill_counters(options: Namespace) -> dict[str, str]:
    """Families of a hundred counters, some without a family, and the times of a hundred tasks."""
    for number in range(options.counters):
        count(f"shop{number // 100}:item-{number % 100}" if number % 10 else f"hits-{number}", 1 + number % 7)
        if number % AT_ONCE == AT_ONCE - 1:
            flush()
    for number in range(100):
        for value in (300, 2_000, 40_000):
            measure(f"runs-us:{JOBS[0]}_{number}", value * (1 + number))
            measure(f"runs-waited-us:{JOBS[0]}_{number}", value)
    flush()
    return {"counter": "shop1:item-1", "family": "shop1"}


def fill_rows(options: Namespace) -> dict[str, str]:
    """Rows that are stored, but for a thousandth that fails and a hundredth that is late."""
    cache, loader = RowCache("items", SHAPE), Loader()
    late = options.rows // 100
    for begin in range(0, options.rows, AT_ONCE):
        cache.schedule_many(dict.fromkeys(range(begin, min(begin + AT_ONCE, options.rows)), 600.0))
        while len(claims := loader.claim(AT_ONCE)):
            rows, errors = dict[str, Stored](), dict[str, str]()
            for each in (member for claim in claims.claims for member in claim.members):
                _, key = name_and_key(each)
                if int(key) % 1_000 == 7:
                    errors[each] = "ValueError: a price is missing"
                else:
                    rows[each] = Stored(True, SHAPE.encode(key, [f"Item {key}", 3, "As it is. " * 10]))
            loader.fail(claims.claims, errors)
            loader.store(claims.claims, rows)
    for begin in range(0, late, AT_ONCE):
        cache.refresh(*range(begin, min(begin + AT_ONCE, late)))
    return {"model": "items", "row": "items:11"}


def fill_chats(options: Namespace) -> dict[str, str]:
    """Small chats, and one with 500 members and as many messages."""
    for number in range(options.chats - 1):
        persons = [f"person-{(number * 3 + each) % options.chats}" for each in range(3)]
        Chat.create(persons[0], members=persons[1:], text="Is it still there?", title=f"Chat {number}")
    members = [f"person-{number}" for number in range(500)]
    chat = Chat.create(members[0], members=members[1:], title="Everybody", id="everybody")
    for number, member in enumerate(members):
        seq = chat.send(member, f"Message {number}: who has a lantern for tonight's walk?").seq
    return {"chat": chat.id, "seq": str(seq), "user": members[7], "before": str(seq)}


def fill_mailboxes(options: Namespace) -> dict[str, str]:
    for number in range(options.mailboxes):
        Mailbox(f"person-{number}").push("shop", "Your parcel is on its way.")
    letters = Mailbox("person-0")
    for number in range(500):
        letters.push(f"person-{number}", "Do you come along tonight?")
    letters.block("person-9")
    return {"mailbox": letters.name, "sender": "person-9"}


def fill_books(options: Namespace) -> dict[str, str]:
    for number in range(options.books - 1):
        AddressBook(f"guild-{number}").load([("1", "Ann Smith"), ("2", "Joël Élan")])
    book = AddressBook("everybody")
    book.load((str(number), f"Name{number % 977} Family{number}") for number in range(options.rows))
    return {"book": book.name, "prefix": "na"}


def fill_locks(options: Namespace) -> dict[str, str]:
    """Locks and semaphores that are held for an hour."""
    for number in range(options.locks):
        lock(f"item:{number}", timeout=LEASE, owner="jack").acquire(blocking=False)
        semaphore = Semaphore(f"api-{number}", limit=5, lease=LEASE)
        permits = [semaphore.try_acquire(owner="jack") for _ in range(3)]
    assert permits[0]
    return {
        "key": key_of("item:0"),
        "semaphore": semaphore.name,
        "permit": permits[0].id,
        "limit": "7",
    }


def fill_logs(options: Namespace) -> dict[str, str]:
    """Copy and count a log of the last days, with each of its parts."""
    Aggregation("places").join()
    with TemporaryDirectory(prefix="log-") as path:
        folder = Path(path)
        import_places(*log_lines.write_places(log_lines.world(min(options.lines, 500_000)), folder))
        log = folder / "access.log"
        first_day = datetime.now(UTC).date() - timedelta(DAYS - 1)
        with log.open("wb") as file:
            file.writelines(log_lines.blocks(options.lines, "combined", days=DAYS, first_day=first_day))
        call_command("copylogs", str(log), no_progress=True, verbosity=0)
        with suppress(SystemExit):  # the command says with it that all is counted
            call_command("aggregatelogs", format="combined", drain=True, verbosity=0)
    return {"job": "default", "aggregation": "places"}
