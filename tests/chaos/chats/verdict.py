"""
The verdict on the chats: the notes of all processes held against each other, and against what Redis has at the end.
Complaints are broken promises; figures are printed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from components.services.chat import Chat, ChatMessage, Inbox
from tests.chaos.chats import notes, plan
from tests.chaos.chats.chronicle import Accepted, Chronicle
from tests.chaos.chats.monkey import DISTURBANCES, Monkey
from tests.chaos.chats.reading import Reading
from tests.chaos.chats.troupe import Troupe

_PAGE = 200
_SHOWN, _LONGEST = 20, 800  # complaints, and characters of each


class Verdict:
    """check() fills `complaints` and `figures`."""

    def __init__(self, folder: Path, troupe: Troupe, monkey: Monkey) -> None:
        self._folder, self._monkey = folder, monkey
        self._done = monkey.done + troupe.done
        self._chronicles = {chat: Chronicle(chat, frozenset(plan.first_members(chat))) for chat in plan.CHATS}
        self._readings: dict[tuple[str, str], Reading] = {}
        #: Client ids.
        self._refused: set[str] = set()
        self._counts: Counter[str] = Counter()
        self.complaints: list[str] = []
        self.figures: list[tuple[str, object]] = []

    def __str__(self) -> str:
        shown = [complaint[:_LONGEST] for complaint in self.complaints[:_SHOWN]]
        return "\n".join([f"{len(self.complaints)} complaints, the first of them:", *shown])

    def check(self) -> None:
        if left_out := DISTURBANCES - self._done.keys():
            self.complaints.append(f"The monkey came to none of these: {', '.join(sorted(left_out))}.")
        for place in range(plan.SENDERS):
            self._read_sender(f"sender-{place}")
        for chat, chronicle in self._chronicles.items():
            chronicle.add_history(history(chat))
            self.complaints += self._check_chat(chronicle)
        for place in range(plan.READERS):
            self._read_reader(f"reader-{place}")
        for person in plan.PERSONS:
            self.complaints += self._check_person(person)
        self._count()

    def _read_sender(self, role: str) -> None:
        accepted: defaultdict[str, list[Accepted]] = defaultdict(list)
        for kind, chat, *rest in notes.read(self._folder, role):
            if kind == "A":
                seq, client_id, is_duplicate = rest
                accepted[chat].append(Accepted(client_id.partition(".")[0], client_id, int(seq)))
                self._counts["accepted by a repetition"] += int(is_duplicate)
            else:
                self._refused.add(rest[0])
                if rest[1] == "1":
                    self._chronicles[chat].uncertain.add(rest[0])
        for chat, messages in accepted.items():
            self._chronicles[chat].add_accepted(messages)

    def _check_chat(self, chronicle: Chronicle) -> Iterator[str]:
        yield from chronicle.check(Chat(chronicle.chat).news(plan.OWNER).last_seq)
        if chronicle.moves != self._monkey.moves[chronicle.chat]:
            yield f"{chronicle.chat}: {chronicle.moves} are told, and {self._monkey.moves[chronicle.chat]} were."
        if chronicle.deleted != self._monkey.deleted[chronicle.chat]:
            yield f"{chronicle.chat}: other messages are told to be deleted than were."

    def _read_reader(self, role: str) -> None:
        for kind, *words in notes.read(self._folder, role):
            if kind == "F":
                person, chat, missed, *tokens = words
                self._reading(person, chat).note(int(missed), tokens)
            elif kind == "K":
                for chat, seq in zip(words[1::2], words[2::2], strict=True):
                    self._reading(words[0], chat).note_acknowledged(int(seq))
            else:
                self.complaints.append(" ".join(words))

    def _reading(self, person: str, chat: str) -> Reading:
        return self._readings.setdefault((person, chat), Reading(person, self._chronicles[chat]))

    def _check_person(self, person: str) -> Iterator[str]:
        """All that he has seen; and how the chats say that he stands."""
        chats = [chat for chat, chronicle in self._chronicles.items() if chronicle.stays(person)]
        readings = [self._reading(person, chat) for chat in chats]
        for reading in readings:
            yield from reading.check(sees_his_own=plan.style(person) != "fetch")
        if strange := [chat for name, chat in self._readings if name == person and chat not in chats]:
            yield f"{person} got something of {strange}, where he never was."
        inside = {reading.chronicle.chat for reading in readings if reading.is_inside}
        news = Inbox(person).chats()
        if {chat.chat_id for chat in news} != inside:
            yield f"{person} is in {sorted(inside)}; his inbox has {[chat.chat_id for chat in news]}."
        for chat in news:
            if (
                chat.unread
                or chat.mentions
                or chat.read_seq < self._reading(person, chat.chat_id).acknowledged
            ):
                yield f"{person} has read all, and finds {chat}."

    def _count(self) -> None:
        chronicles, readings = self._chronicles.values(), self._readings.values()
        accepted = sum(len(chronicle.accepted) for chronicle in chronicles)
        if accepted + len(self._refused) < plan.MESSAGES:
            self.complaints.append(f"Of {plan.MESSAGES} messages {accepted} were accepted.")
        told = sum(gap.told for reading in readings for gap in reading.told)
        moves = sum(len(chronicle.moves) for chronicle in chronicles)
        self.figures += [
            ("persons, chats", f"{len(plan.PERSONS)}, {len(plan.CHATS)}"),
            ("messages accepted", f"{accepted:,}"),
            ("of them found to be there already", f"{self._counts['accepted by a repetition']:,}"),
            ("refused, their sender being outside", f"{len(self._refused):,}"),
            ("events; comings and goings", f"{sum(len(c.events) for c in chronicles):,}; {moves:,}"),
            ("seen by their readers", f"{sum(len(reading.seen) for reading in readings):,}"),
            ("came again before they were acknowledged", f"{sum(r.again for r in readings):,}"),
            ("gone by retention, and told so", f"{told:,}"),
            ("seed", plan.SEED),
            *sorted(self._done.items()),
        ]


def history(chat: str) -> Iterator[ChatMessage]:
    """All that is there, oldest first: the owner was there from the beginning."""
    after, has_more = 0, True
    while has_more:
        page = Chat(chat).history(plan.OWNER, after=after, limit=_PAGE)
        yield from page.messages
        after, has_more = page.messages[-1].seq, page.has_more
