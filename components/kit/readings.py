"""
Figures of /metrics; and gather(), which reads the state of many services together.

A reading is a generator: it yields lists of Asks, gets the answers, and returns what it made of them. All readings
yield before anything is sent, so a gathering takes one round trip to each node for all of them together. Few need a
second one, and only if something is new. reports.py says which readings a service has.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import methodcaller
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from redis import RedisCluster
from redis.exceptions import MovedError, RedisClusterException

from components.exceptions import RedisUnavailable
from components.kit.client import get_client
from components.kit.errors import REDIS_FAILED, redis_errors, translated

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True)
class Ask:
    """One command, which *add* puts into a pipeline to the node of *key*; without a key, to each node."""

    key: str | None
    add: Callable[[Any], object]

    @classmethod
    def of(cls, command: str, key: str, *args: Any, **options: Any) -> Ask:
        """Return the question of a *command* for *key*, such as Ask.of("zcard", key)."""
        return cls(key, methodcaller(command, key, *args, **options))


def ask_sizes(keys: Iterable[str]) -> list[Ask]:
    """Return the questions for how many members the sorted sets at *keys* have."""
    return [Ask.of("zcard", key) for key in keys]


@dataclass
class Family:
    """The figures of one name, each with its labels."""

    name: str
    help: str
    samples: list[tuple[dict[str, str], float]] = field(default_factory=list)
    kind: Literal["counter", "gauge"] = "gauge"

    def add(self, value: float, **labels: str) -> None:
        self.samples.append((labels, value))


@dataclass(frozen=True)
class Event:
    """An event whose sum is the figure *name*; *label* says what it was of. A histogram is of its durations."""

    event: str
    name: str
    help: str
    label: str = ""
    #: Further labels, which are always the same.
    labels: tuple[tuple[str, str], ...] = ()
    is_histogram: bool = False


#: What reads the state of a service: it yields Asks, gets their answers, and returns what it made of them.
Reading: TypeAlias = Generator[Sequence[Ask], list[Any], _T]
Gauges: TypeAlias = Reading[list[Family]]


@dataclass
class Gathered(Generic[_T]):
    """What the readings of a gathering have returned."""

    found: dict[str, _T] = field(default_factory=dict)
    #: The readings that got an error for an answer, and the error.
    missing: dict[str, Exception] = field(default_factory=dict)
    #: The seconds that each node took to answer everything, when it was last asked.
    took: dict[str, float] = field(default_factory=dict)


def gather(readings: Mapping[str, Reading[_T]]) -> Gathered[_T]:
    """Run the *readings*, in one round trip to each node for all. If Redis is away, all of them are missing."""
    gathered = Gathered[_T]()
    answers: dict[str, Any] = dict.fromkeys(readings)  # None begins a reading
    while answers:
        asks = dict[str, Sequence[Ask]]()
        for name, some in answers.items():
            if failed := [each for each in some or () if isinstance(each, Exception)]:
                gathered.missing[name] = failed[0]
                readings[name].close()
                continue
            try:
                asks[name] = readings[name].send(some)
            except StopIteration as end:
                gathered.found[name] = end.value
            except Exception as error:
                logger.exception("The figures of %s could not be read.", name)
                gathered.missing[name] = error
        if not asks:
            break
        try:
            outcomes = iter(answers_to([ask for some in asks.values() for ask in some], gathered.took))
        except RedisUnavailable as error:
            outcomes = repeat(error)
        answers = {name: [next(outcomes) for _ in some] for name, some in asks.items()}
    return gathered


def answers_to(asks: Sequence[Ask], took: dict[str, float] | None = None) -> list[Any]:
    """
    Return the answers to *asks*, or the exceptions that they raised, after one round trip to each node.

    The answer to an Ask without a key is a dict: the name of each node, and its answer. *took* gets the seconds that
    each node took. Raises RedisUnavailable only if not even the nodes are known.
    """
    with redis_errors():
        client: Any = get_client()
        nodes = _nodes(client)
    found: list[Any] = [{} if ask.key is None else None for ask in asks]
    plan: dict[str, list[int]] = {name: [] for name in nodes}
    for number, ask in enumerate(asks):
        try:
            is_of_one = ask.key is not None and isinstance(client, RedisCluster)
            for name in [client.get_node_from_key(ask.key).name] if is_of_one else nodes:
                plan[name].append(number)
        except RedisClusterException as error:  # no node serves the slot
            found[number] = translated(error)
    for name, numbers in plan.items():
        began = time.perf_counter()
        answers = _answers(nodes[name], [asks[each] for each in numbers])
        if took is not None:
            took[name] = time.perf_counter() - began
        for number, answer in zip(numbers, answers, strict=True):
            if asks[number].key is None:
                found[number][name] = answer
            else:
                found[number] = answer
    if any(isinstance(each, MovedError) for each in found):
        client.nodes_manager.initialize()  # the next gathering asks the right node
    return found


def _nodes(client: Any) -> dict[str, Any]:
    if isinstance(client, RedisCluster):
        return {node.name: client.get_redis_connection(node) for node in client.get_primaries()}  # type: ignore[no-untyped-call]
    options = client.get_connection_kwargs()
    name = options.get("path") or f"{options.get('host', 'redis')}:{options.get('port', 6379)}"
    return {name: client}


def _answers(node: Any, asks: Sequence[Ask]) -> list[Any]:
    if not asks:
        return []
    try:
        pipe = node.pipeline(transaction=False)
        for ask in asks:
            ask.add(pipe)
        return list(pipe.execute(raise_on_error=False))
    except REDIS_FAILED as error:
        return [translated(error)] * len(asks)
