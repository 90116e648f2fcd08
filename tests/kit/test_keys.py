"""The keyspace is what keys.py says: names, types, slots, and who lets go of what."""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import pytest
from django.test.utils import override_settings
from hypothesis import assume, example, given
from hypothesis import strategies as st
from redis import Redis
from redis.crc import key_slot

from components.kit.scripts import Script
from components.services.autocomplete import AddressBook
from components.services.logs import WorkerRecord, note_job
from components.services.logs.jobs import tell
from components.services.queues import Ticks
from components.services.queues import keys as queues_keys
from docs.keyspace import END, SCHEMA
from tests.support.scenarios import SCENARIOS

TYPES = {
    "HASH": b"hash",
    "SET": b"set",
    "ZSET": b"zset",
    "LIST": b"list",
    "STRING": b"string",
    "STREAM": b"stream",
}
names = st.text(min_size=1, max_size=20) | st.text("a{}%7BD:", min_size=1, max_size=4)


def tag(key: str) -> str:
    """What a cluster hashes: the text between the first { and the next }."""
    match = re.search(r"\{([^}]*)\}", key)
    assert match is not None
    return match[1]


def test_each_key_reads_prefix_pattern_name_part_and_says_its_type_and_its_end() -> None:
    assert {key.service for key in SCHEMA.values()} >= {"chat", "mailboxes", "queues"}
    for label, key in SCHEMA.items():
        made = key()
        assert re.fullmatch(r"components:[a-z]+:\{[^{}]+\}:[a-z-]+(:(mail|shop)(:mail)?)?", made), label
        assert re.match(r"(HASH|SET|ZSET|LIST|STRING|STREAM)\b", key.doc), label
        assert END.search(key.doc), label
        with override_settings(COMPONENTS={"PREFIX": "staging"}):
            assert key() == made.replace("components:", "staging:", 1)


@given(names, names)
def test_all_keys_of_one_name_lie_in_one_slot_whatever_the_name(name: str, part: str) -> None:
    made = [(entity_of(label), key(name, part)) for label, key in SCHEMA.items()]

    for _entity, group in groupby(made, key=itemgetter(0)):
        alike = [key for _, key in group]
        assert len({key_slot(key.encode("utf-8", "surrogatepass")) for key in alike}) == 1
        assert len({tag(key) for key in alike}) == 1


def entity_of(label: str) -> tuple[str, str]:
    """What has all its keys in one slot: that of a class, or what the functions of a service are for."""
    kind = label.partition(".")[0] if "Keys." in label else ""
    return SCHEMA[label].service, kind or SCHEMA[label]().split(":")[1]


@example("a}b", "a}c")
@example("a{", "a%7B")
@given(names, names)
def test_different_names_have_different_keys_and_tags(name: str, other: str) -> None:
    assume(name != other)

    assert tag(queues_keys.BackendKeys(name).tasks) != tag(queues_keys.BackendKeys(other).tasks)


@given(names, names)
def test_no_two_parts_share_a_key_whatever_they_are_called(part: str, other: str) -> None:
    made = {label: {key("shop", each) for each in (part, other)} for label, key in SCHEMA.items()}

    for label, found in made.items():
        assert len(found) == (len({part, other}) if SCHEMA[label].has_part else 1)
    assert len(set().union(*made.values())) == sum(map(len, made.values()))


#: What matches all keys that the page of keys means, whatever they are the keys of.
PATTERNS = {
    label: re.compile(re.sub(r"\\\{.*?\\\}|<\w+>", ".+", re.escape(key.pattern)))
    for label, key in SCHEMA.items()
}


def meant(key: str) -> list[str]:
    """Return the labels of the declarations that mean this key: those that say most of it."""
    found = {label: len(each.pattern) for label, each in PATTERNS.items() if each.fullmatch(key)}
    return [label for label, size in found.items() if size == max(found.values())]


@dataclass
class Seen:
    """The types of stored keys, and whether they expire, by the declarations that mean them."""

    types: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    ends: dict[str, set[bool]] = field(default_factory=lambda: defaultdict(set))
    strangers: set[str] = field(default_factory=set)

    def look(self, redis: Redis) -> None:
        for name in redis.keys("*"):
            kind, left = redis.type(name), redis.pttl(name)
            labels = meant(f"<prefix>{name.decode().removeprefix('components')}") if kind != b"none" else []
            for label in labels:
                self.types[label].add(kind)
                self.ends[label].add(left != -1)
            if not labels and kind != b"none":
                self.strangers.add(name.decode())


@contextmanager
def watched(redis: Redis, seen: Seen) -> Iterator[None]:
    """Look at all keys after each call of a script."""
    send, pipelined = Script.send, Script._pipelined

    async def _send(self: Script, client: Any, **call: Any) -> Any:
        answer = await send(self, client, **call)
        seen.look(redis)
        return answer

    async def _pipelined(self: Script, *args: Any) -> Any:
        answers = await pipelined(self, *args)
        seen.look(redis)
        return answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Script, "send", _send)
        patch.setattr(Script, "_pipelined", _pipelined)
        patch.setattr(Script, "quick", lambda *_args: None)
        yield


#: Keys that expire in some states only: of chats with a max_age, or deleted; tables not current; locks that end.
SOMETIMES = {
    "ChatKeys.chat", "ChatKeys.messages", "ChatKeys.own", "ChatKeys.sent", "CounterKeys.names", "TableKeys.manifest",
    "TableKeys.part", "LockKeys.lock", "LockKeys.state", "LockKeys.held", "FencedKeys.value", "FencedKeys.fence",
    "BackendKeys.worker", "SemaphoreKeys.names",
}  # fmt: skip


def others(redis: Redis) -> None:
    """Write what no script writes, and what takes many entries."""
    note_job("default")
    tell(
        "default", "one", WorkerRecord("host", 7, "2026-01-01T00:00:00+00:00", 1, 1, 0.5, "book", "city", "")
    )
    Ticks().pause("hourly")
    book = AddressBook("large")
    book.load((number, "ann") for number in range(70))
    for number in range(70):
        book.select(number)


def test_every_key_has_the_type_and_the_end_of_its_declaration(redis: Redis) -> None:
    seen = Seen()
    for scenario in chain(*SCENARIOS.values()):
        redis.flushall()
        with watched(redis, seen):
            scenario(redis)
    redis.flushall()
    others(redis)
    seen.look(redis)

    assert seen.strangers == {"a"}  # the lock at a key of the caller's own
    declared = {label: {TYPES[key.doc.split()[0].rstrip(",")]} for label, key in SCHEMA.items()}
    assert {label: seen.types[label] for label in declared} == declared
    ends = {
        label: {True, False} if label in SOMETIMES else {"Expires" in key.doc}
        for label, key in SCHEMA.items()
    }
    assert {label: seen.ends[label] for label in ends} == ends
