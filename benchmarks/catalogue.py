"""All benchmarks: what each compares, how much it does, and what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Benchmark(NamedTuple):
    about: str
    #: Option -> its usual value, its value with --quick, and its description.
    sizes: Mapping[str, tuple[Any, Any, str]]
    #: The Django site that it needs, one of settings.py: "" has only the queue, "admin" the control room,
    #: "pages" that with services that are counted, "shop" tables.
    site: str = ""
    #: "needed" or "wanted" if it uses PostgreSQL.
    database: str = ""
    #: The number of processes that start together.
    crew: int = 0
    #: The parts from which --parts chooses.
    parts: Sequence[str] = ()
    #: Whether it runs without a server.
    is_alone: bool = False
    #: Whether --only chooses among its peers.
    has_peers: bool = False
    #: Whether it counts round trips with a proxy, which needs the Unix socket.
    has_proxy: bool = False


BENCHMARKS = {
    "queues": Benchmark(
        "Task queues: Django's Tasks API on components beside huey, dramatiq, RQ, Celery, saq, BullMQ and Sidekiq.",
        {
            "rounds": (5, 1, "turns of each system"),
            "tasks": (20_000, 400, "tasks of a turn; slow peers get fewer"),
            "naps": (6_400, 200, "tasks of 10 ms"),
            "samples": (1_000, 20, "tasks whose latency is measured"),
        },
        has_peers=True,
    ),
    "counted": Benchmark(
        "What it costs to count services: the same tasks with COUNT_SERVICES and without, in turns.",
        {
            "rounds": (7, 2, "turns of each"),
            "tasks": (20_000, 400, "tasks of a turn"),
        },
    ),
    "queue_sizes": Benchmark(
        "A queue of a thousand to a million ready tasks: how long producers, workers and the control room "
        "wait.",
        {"largest": (1_000_000, 10_000, "the largest size of the queue")},
        site="admin",
    ),
    "pages": Benchmark(
        "Every page of the control room on a site with a million tasks, and much of everything else.",
        {
            "tasks": (1_000_000, 4_000, "tasks of all queues, half of them in one"),
            "queues": (1_000, 20, "queues"),
            "counters": (100_000, 500, "counters"),
            "rows": (100_000, 1_000, "cached rows, and entries of the largest address book"),
            "chats": (10_000, 20, "chats, each with three members, and one with 500"),
            "mailboxes": (10_000, 20, "mailboxes"),
            "books": (200, 5, "address books"),
            "locks": (1_000, 10, "held locks, and as many semaphores"),
            "lines": (1_000_000, 20_000, "lines of the log whose traffic is shown"),
        },
        site="pages",
    ),
    "memory": Benchmark(
        "The memory of a worker and of Redis over a million tasks.",
        {"tasks": (1_000_000, 5_000, "tasks that the worker drains")},
    ),
    "locks": Benchmark(
        "Locks and semaphores beside redis-py's, python-redis-lock, pottery's and the book's.",
        {
            "rounds": (5, 1, "turns of each system"),
            "pairs": (2_000, 100, "uncontended pairs of a round"),
            "acquisitions": (50, 4, "acquisitions of each process in a crowd, a turn"),
            "hand-overs": (25, 4, "hand-overs of a turn"),
        },
        crew=16,
        has_peers=True,
    ),
    "calls": Benchmark(
        "What a call costs its caller, and the calls of coroutines, beside a raw socket and redis-py.",
        {"rounds": (7, 2, "turns of each"), "calls": (5_000, 500, "calls of a turn")},
    ),
    "counters": Benchmark(
        "Counters beside the book's, prometheus_client and StatsD.",
        {
            "rounds": (5, 1, "turns of each system"),
            "events": (5_000, 100, "events of a round of a slow system; quick ones count more"),
            "names": (100_000, 1_000, "the most names whose cost is measured while nobody counts"),
            "cleaned": (10_000, 1_000, "the most names for which the book's cleaner runs to its end"),
        },
        has_peers=True,
    ),
    "chat": Benchmark(
        "Chats beside the book's and the channel layers of channels_redis.",
        {
            "rounds": (5, 1, "turns of each system"),
            "messages": (2_000, 50, "messages of a round"),
            "stored": (20_000, 1_000, "the largest number of messages in a chat whose bytes are measured"),
            "wakes": (1_000, 20, "people that a turn wakes"),
            "pause": (0.005, 0.005, "average seconds between two wake-ups"),
        },
        crew=2,
        has_proxy=True,
        has_peers=True,
    ),
    "autocomplete": Benchmark(
        "A million names beside the book's directory, PostgreSQL's LIKE and Django's admin.",
        {
            "rounds": (3, 1, "turns of each system"),
            "names": (1_000_000, 2_000, "names in the book"),
            "prefixes": (400, 10, "prefixes of each length in a turn"),
            "seconds": (1.0, 0.2, "seconds of a turn of many processes"),
        },
        site="shop",
        database="wanted",
        crew=16,
        parts=("load", "latency", "crowd", "database", "rebuild", "contacts"),
    ),
    "market": Benchmark(
        "The book's market: WATCH, a lock for the market, and a lock for each item.",
        {
            "rounds": (3, 1, "turns of each strategy"),
            "seconds": (2.0, 0.2, "seconds of a turn"),
            "sellers": (5, 2, "processes that list items at the same time"),
            "figure": ("", "", "where to write the curves, as an SVG"),
        },
        crew=21,
        has_peers=True,
    ),
    "rows": Benchmark(
        "Cached rows beside the book's, Django's ORM on PostgreSQL, cacheops and Django's cache.",
        {
            "rounds": (3, 1, "turns of each system"),
            "rows": (50_000, 1_000, "rows in the table"),
            "periods": (4, 1, "periods of 5 s in which lateness is measured"),
            "lists": (50, 5, "lists of 100 rows that are read"),
            "calls": (200, 20, "calls of a turn that reads"),
            "idle": (10_000, 500, "rows that are not due"),
        },
        site="shop",
        database="needed",
        parts=("refresh", "lateness", "reading", "counts", "idle"),
        has_proxy=True,
        has_peers=True,
    ),
    "logs": Benchmark(
        "Logs handed out through Redis and counted by place, beside the book's loop and GoAccess.",
        {
            "rounds": (3, 1, "turns of each"),
            "lines": (20_000_000, 50_000, "lines of the log"),
            "book": (500_000, 5_000, "lines for the book's loop and GoAccess"),
            "ranges": (500_000, 5_000, "ranges of addresses in the made-up world"),
        },
        crew=2,
    ),
    "kernels": Benchmark(
        "Lines per second of both kernels that count logs, against each other, without a server.",
        {
            "rounds": (5, 1, "turns of each kernel"),
            "lines": (2_000_000, 50_000, "lines of the fast kernel; the other one counts fewer"),
        },
        is_alone=True,
    ),
}
