"""
One call: what it costs its caller, and how many of them the coroutines of an event loop make in a second.

A caller's cost is the processor time of its process, which does not depend on how a machine wakes processes.
"""

from __future__ import annotations

import asyncio
import socket
import time
from argparse import Namespace
from typing import Any

from hiredis import Reader, pack_command
from redis.asyncio import BlockingConnectionPool, Redis

from benchmarks import tasks
from benchmarks.harness import OURS, Bench, Call, Crew, Turn, client, socket_path, url
from benchmarks.report import Bar, at_least, at_most, compare, mid, over, print_bars, span, times
from components.kit.client import get_async_client
from components.kit.scripts import Script
from components.services.locks import lock
from components.services.semaphores import Semaphore

RAW, REDIS_PY = "EVALSHA on a raw socket", "redis-py"
TIMES = {"enqueue": 7, "a lock and its release": 9, "a permit and its release": 11}  # the bars, times RAW
CROWDS = {1: 1.3, 16: 4, 1_000: 10}  # coroutines at once, and the bar


class Echo(Script):
    source = "return ARGV[1]"


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    costs = compare(
        "a call, from one thread",
        calls := callers(),
        options.rounds,
        lambda name: cost(calls[name], options.calls),
        mid("caller's CPU µs", "cpu", ".1f"),
        over(RAW, "cpu", head="times raw", is_theirs=True),
    )
    bars: list[Bar] = [
        at_most(f"{name}, times raw", most, times(costs, name, RAW, "cpu")) for name, most in TIMES.items()
    ]
    for number, least in CROWDS.items():
        rates = compare(
            f"coroutines, {number:,} at once",
            [OURS, REDIS_PY],
            options.rounds,
            lambda name, number=number: asyncio.run(crowd(name, number, max(number, options.calls))),  # type: ignore[misc]
            mid("calls/s", "rate"),
            span(),
            over(),
        )
        bars.append(
            at_least(f"coroutines, {number:,} at once, times redis-py", least, times(rates, OURS, REDIS_PY))
        )
    print_bars(bars)


def callers() -> dict[str, Call]:
    sha: Any = client().script_load(Echo.source)
    raw, reader = socket.socket(socket.AF_UNIX), Reader()
    raw.connect(str(socket_path()))
    packed, semaphore = pack_command(("EVALSHA", sha, "1", "key", "text")), Semaphore("calls", limit=5)

    def ask() -> None:
        raw.sendall(packed)
        reader.feed(raw.recv(65_536))
        reader.gets()

    def hold(held: Any) -> None:
        with held:
            pass

    return {
        RAW: ask,
        REDIS_PY: lambda: client().evalsha(sha, 1, "key", "text"),
        "enqueue": tasks.noop.enqueue,
        "a lock and its release": lambda: hold(lock("calls")),
        "a permit and its release": lambda: hold(semaphore.acquire()),
    }


def cost(call: Call, count: int) -> Turn:
    for _ in range(50):
        call()
    began = time.process_time()
    for _ in range(count):
        call()
    return {"cpu": (time.process_time() - began) / count * 1e6}


async def crowd(name: str, number: int, count: int) -> Turn:
    """Let *number* coroutines make *count* calls. redis-py has 50 connections, for which its callers wait."""
    echo, ours = Echo("echo"), get_async_client()
    theirs = Redis.from_pool(BlockingConnectionPool.from_url(url(), max_connections=50, timeout=None))

    async def ask() -> Any:
        if name == OURS:
            return await echo.acall(ours, keys=["key"], args=["text"])
        return await theirs.evalsha(echo.sha, 1, "key", "text")

    async def call() -> None:
        for _ in range(count // number):
            await ask()

    async with theirs:
        await asyncio.gather(*(ask() for _ in range(min(number, 50))))
        began = time.monotonic()
        await asyncio.gather(*(call() for _ in range(number)))
        return {"rate": count // number * number / (time.monotonic() - began)}
