"""
What the sequence of a chat must be: the messages that senders were told of, at the seqs that they were told, and
between them the events. And when somebody was in the chat: what was said then he had to see, all of it, in order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from components.services.chat import ChatMessage, Event, EventKind

_OUT = (EventKind.LEFT, EventKind.KICKED, EventKind.BLOCKED)
FOR_EVER = 1 << 62


@dataclass(frozen=True)
class Accepted:
    """A message, as its sender was told of it."""

    sender: str
    client_id: str
    seq: int


@dataclass(frozen=True)
class Stay:
    """From when to when somebody was in a chat: he sees what is between the two seqs."""

    after: int
    before: int = FOR_EVER


@dataclass
class Chronicle:
    chat: str
    first_members: frozenset[str]
    accepted: dict[int, Accepted] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    #: Client ids of messages whose sender was told that he is outside, but not whether he was when he first asked.
    uncertain: set[str] = field(default_factory=set)

    def add_accepted(self, accepted: Iterable[Accepted]) -> None:
        for each in accepted:
            before = self.accepted.setdefault(each.seq, each)
            if before != each:
                self.complaints.append(f"{self.chat}: {before} and {each} were told the same seq.")

    def add_history(self, history: Iterable[ChatMessage]) -> None:
        """Hold what is there at the end against what was accepted, and take the events from it."""
        there = list(history)
        for before, after in pairwise(there):
            if after.seq <= before.seq or after.sent_at < before.sent_at:
                self.complaints.append(f"{self.chat}: {after} comes after {before}.")
        # The first is that of the creation; where retention has taken it, it was there.
        self.events = {1: Event(EventKind.CREATED, "")}
        self.events |= {message.seq: message.event for message in there if message.event}
        for message in there:
            if message.client_id in self.uncertain:
                self.accepted[message.seq] = Accepted(message.sender, message.client_id, message.seq)
        first = min((message.seq for message in there), default=FOR_EVER)
        self._compare({message.seq: message for message in there if not message.event}, first)

    def _compare(self, there: dict[int, ChatMessage], first: int) -> None:
        for seq, each in self.accepted.items():
            if seq >= first and seq not in self.deleted and seq not in there:
                self.complaints.append(f"{self.chat}: {each} was accepted, and is lost.")
        for seq, message in there.items():
            known = self.accepted.get(seq)
            if known is None or (known.sender, known.client_id) != (message.sender, message.client_id):
                self.complaints.append(f"{self.chat}: {message} is there, and what was accepted is {known}.")
            if seq in self.deleted:
                self.complaints.append(f"{self.chat}: {message} was deleted, and is there.")

    def check(self, last_seq: int) -> Iterator[str]:
        """Whether each seq has something, and each sender's messages stand in his order."""
        yield from self.complaints
        if self.sequence != list(range(1, last_seq + 1)):
            odd = sorted(set(range(1, last_seq + 1)) ^ set(self.sequence))
            yield f"{self.chat} has {last_seq} seqs; these are not of one message or event each: {odd[:10]}."
        spoken: dict[str, int] = {}
        for seq in sorted(self.accepted):
            each = self.accepted[seq]
            number = int(each.client_id.rpartition(".")[2])
            if number <= spoken.get(each.sender, -1):
                yield f"{self.chat}: {each} stands after his number {spoken[each.sender]}."
            spoken[each.sender] = number

    @cached_property
    def deleted(self) -> frozenset[int]:
        return frozenset(int(e.detail) for e in self.events.values() if e.kind is EventKind.DELETED)

    @cached_property
    def sequence(self) -> list[int]:
        """All seqs that have something."""
        return sorted(self.accepted.keys() | self.events.keys())

    @cached_property
    def seqs(self) -> dict[str, int]:
        """Of each as it stands in the notes of a reader."""
        found = {f"{seq}={each.client_id}": seq for seq, each in self.accepted.items()}
        return found | {f"{seq}:{event.kind}": seq for seq, event in self.events.items()}

    def between(self, after: int, before: int) -> list[int]:
        """The seqs that have something, without these two."""
        return self.sequence[bisect_right(self.sequence, after) : bisect_left(self.sequence, before)]

    @cached_property
    def moves(self) -> list[tuple[EventKind, str]]:
        """What happened to whom, in order."""
        kinds = (EventKind.JOINED, EventKind.UNBLOCKED, *_OUT)
        return [(event.kind, event.user) for _, event in sorted(self.events.items()) if event.kind in kinds]

    def stays(self, person: str, *, sees_his_joining: bool = False) -> list[Stay]:
        found = [Stay(0)] if person in self.first_members else []
        for seq, event in sorted(self.events.items()):
            if event.user != person:
                continue
            is_inside = bool(found) and found[-1].before == FOR_EVER
            if event.kind is EventKind.JOINED and not is_inside:
                found.append(Stay(seq - 1 if sees_his_joining else seq))
            elif event.kind in _OUT and is_inside:
                found[-1] = Stay(found[-1].after, seq)
        return found
