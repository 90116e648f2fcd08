"""
What one person was given of one chat, from the notes of his reader; and what the chronicle says of it.

Promised: he has seen all that was said while he was in the chat, in order, and nothing else; of what retention took
from him he was told the number. Each came once, but for what came again because it had not been acknowledged. What he
has said himself need not come if he had read all before it, and what is deleted comes to those who are quick. Who
asks by the reading position begins after his joining, who keeps a position of his own, with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from tests.chaos.chats.chronicle import FOR_EVER, Chronicle, Stay


@dataclass(frozen=True)
class Gap:
    """Where something is missing: so many were told, from his position on, which may be before what he has got."""

    position: int
    before: int
    after: int
    told: int


@dataclass
class Reading:
    person: str
    chronicle: Chronicle
    #: The seqs that came, each once.
    seen: list[int] = field(default_factory=list)
    acknowledged: int = 0
    #: How many came again.
    again: int = 0
    told: list[Gap] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def note(self, missed: int, tokens: list[str]) -> None:
        """What came in one answer."""
        known = self.chronicle.seqs
        if strange := [token for token in tokens if token not in known]:
            self._complain(f"got {strange[:10]}, and that was never said")
        seqs = [known[token] for token in tokens if token in known]
        if not seqs:
            return
        if any(first >= second for first, second in pairwise(seqs)):
            self._complain(f"got {tokens} in one answer, which are not in order")
        if seqs[0] <= self.acknowledged:
            self._complain(f"got {tokens[0]} though he had acknowledged {self.acknowledged}")
        highest = self.seen[-1] if self.seen else 0
        fresh = bisect_right(seqs, highest)
        self.again += fresh
        if missed and seqs[fresh:]:
            self.told.append(Gap(min(highest, self.acknowledged), highest, seqs[fresh], missed))
        self.seen += seqs[fresh:]

    def note_acknowledged(self, upto: int) -> None:
        self.acknowledged = max(self.acknowledged, upto)

    def check(self, *, sees_his_own: bool) -> Iterator[str]:
        yield from self.complaints
        seen, inside = set(self.seen), set()
        stays = self.chronicle.stays(self.person, sees_his_joining=sees_his_own)
        for stay in stays:
            due = self.chronicle.between(stay.after, stay.before)
            inside.update(due)
            yield from self._check_stay(stay, due, seen, sees_his_own=sees_his_own)
        if strange := sorted(seen - inside):
            yield f"{self} got {strange[:10]}, and was not there: {stays}."

    def _check_stay(self, stay: Stay, due: list[int], seen: set[int], *, sees_his_own: bool) -> Iterator[str]:
        """All of it; of one that has ended, all up to where he last looked."""
        if stay.before < FOR_EVER:
            last = max((number for number in due if number in seen), default=0)
            due = due[: bisect_right(due, last)]
        missing = [number for number in due if number not in seen and number not in self.chronicle.deleted]
        if not sees_his_own:
            missing = [number for number in missing if not self._is_his(number)]
        for gap in self.told:
            gone = [number for number in missing if gap.before < number < gap.after]
            if not len(gone) <= gap.told < gap.after - gap.position:
                yield f"{self} was told of {gap}, and it is {len(gone)}."
            missing = [number for number in missing if not gap.before < number < gap.after]
        if missing:
            yield f"{self} never got {missing[:10]}, {len(missing)} in all, of {stay}."

    @property
    def is_inside(self) -> bool:
        """At the end."""
        stays = self.chronicle.stays(self.person)
        return bool(stays) and stays[-1].before == FOR_EVER

    def _is_his(self, number: int) -> bool:
        accepted = self.chronicle.accepted.get(number)
        return accepted is not None and accepted.sender == self.person

    def _complain(self, what: str) -> None:
        self.complaints.append(f"{self} {what}.")

    def __str__(self) -> str:
        return f"{self.person} in {self.chronicle.chat}"
