"""Arguments that several services check: lists, numbers, names and states."""

import math
from collections.abc import Callable

import pytest
from redis import Redis

from components.exceptions import (
    InvalidName,
    InvalidValue,
)
from components.kit.compat import InvalidTask
from components.services.autocomplete import RecentContacts
from components.services.chat import Chat
from components.services.counters import CounterReader
from components.services.locks import LockReader, locks
from components.services.queues import NewTask, TaskQueue, exponential, task
from components.services.rows import RowCache
from components.services.semaphores import Semaphore, SemaphoreReader


@pytest.mark.parametrize(
    "call",
    [
        lambda: Chat.create("ann", members="12"),
        lambda: Chat("c").add("12"),
        lambda: Chat("c").send("ann", "hi", mentions="12"),
        lambda: CounterReader().read("abc", 60),
        lambda: CounterReader().histograms("abc", 60),
        lambda: CounterReader().sizes("abc"),
        lambda: TaskQueue().cancel("default", "abc"),
        lambda: TaskQueue().present("default", ["ready"], "abc"),
        lambda: RowCache("c", shape="a").get_many("12"),
        lambda: RecentContacts("ann").erase("12"),
        lambda: locks("abc"),
    ],
)
def test_a_text_in_place_of_a_list_is_refused(call: Callable[[], object], redis: Redis) -> None:
    with pytest.raises((InvalidName, InvalidValue), match="give a list"):
        call()
    assert redis.keys() == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: TaskQueue().wait_for("a", wait=math.nan),
        lambda: TaskQueue().tasks("default", "bogus"),
        lambda: TaskQueue().tasks("default", "dead", limit=math.nan),
        *(
            lambda lease=lease: TaskQueue().push_many([NewTask(name="a", lease=lease)])
            for lease in (-5, 1e300, True, "1")
        ),
        lambda: TaskQueue().push("a", priority=True),
        lambda: exponential(math.nan),
        lambda: task(priority=True)(print),
        lambda: Semaphore("a", limit=1).holders(limit=math.nan),
        lambda: Semaphore("a", limit=1).waiters(limit=0),
        lambda: SemaphoreReader().page(limit=math.nan),
        lambda: LockReader().held(limit=math.nan),
        lambda: locks(["a", 5]),
    ],
)
def test_an_odd_number_name_or_state_is_refused_in_a_sentence(
    call: Callable[[], object], redis: Redis
) -> None:
    with pytest.raises(
        (InvalidName, InvalidValue, InvalidTask, ValueError), match=r"must be|cannot be called"
    ):
        call()
    assert redis.keys() == []


def test_an_unknown_argument_is_an_error_of_the_public_method() -> None:
    for call in (lambda: TaskQueue().push("x", id="a"), lambda: RecentContacts("joe").touch("ann", of="x")):  # type: ignore[call-arg]
        with pytest.raises(
            TypeError, match=r"^(TaskQueue\.push|RecentContacts\.touch)\(\) got an unexpected"
        ):
            call()
