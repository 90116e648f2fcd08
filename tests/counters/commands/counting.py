"""
A process that counts and then ends as its first argument says. Nothing is sent but by what happens at its end; the
last that it writes is that it has counted.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time

import django

django.setup()

from components.services.counters import Counter, buffer, count, flush  # noqa: E402  (needs the settings)
from tests.support.waiting import eventually  # noqa: E402

buffer.INTERVAL = 3_600.0


def tell() -> None:
    print("counted", flush=True)  # noqa: T201


def exit_normally() -> None:
    sys.exit(3)


def wait_for_a_signal() -> None:
    """The handler may not wait: gevent forbids it, and Thread.start() waits for the thread."""
    start = threading.Thread.start

    def start_elsewhere(thread: threading.Thread) -> None:
        assert threading.current_thread() is not threading.main_thread()
        start(thread)

    threading.Thread.start = start_elsewhere  # type: ignore[method-assign]
    kill, lost = os.kill, [True]  # the first signal from itself, which comes just before it sleeps
    os.kill = lambda *to: lost.pop() and None if lost else kill(*to)
    tell()
    while True:
        time.sleep(60)


def wait_with_a_held_lock() -> None:
    """As if the signal came while the connection pool was in use: the thread that sends needs it, too."""
    flush()
    with buffer.get_client().connection_pool._lock:  # type: ignore[attr-defined]
        count("hits", 10)
        wait_for_a_signal()


def wind_up_as_a_server() -> None:
    """A handler of its own; when all is done, the signal is let through, and no atexit comes."""
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: asked.set())
    buffer.prepare()
    tell()
    asked.wait()
    count("hits", 5)
    eventually(lambda: Counter("hits").get(3_600).total == 15)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def fork() -> None:
    child = os.fork()
    count("hits", 1 if child else 2)
    if child:
        os.waitpid(child, 0)


def add_one(number: int) -> None:
    count("hits")


def pool() -> None:
    """The children, which have all begun, are ended by SIGTERM, perhaps while they send their last counts."""
    with multiprocessing.get_context("fork").Pool(3, multiprocessing.Barrier(3).wait) as children:
        children.map(add_one, range(300))


MANNERS = {
    each.__name__: each
    for each in (exit_normally, wait_for_a_signal, wait_with_a_held_lock, wind_up_as_a_server, fork, pool)
}

if __name__ == "__main__":
    count("hits", 10)
    MANNERS[sys.argv[1]]()
