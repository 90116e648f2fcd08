"""A chat in plain Python: all that was said is a list, and what is read or unread is counted anew each time."""

from dataclasses import dataclass, field

from components.exceptions import (
    Blocked,
    ChatClosed,
    ChatNotFound,
    ClientIdReused,
    MessageNotFound,
    Muted,
    NotAllowed,
    NotAMember,
    TooManyMembers,
)

RANK = {"owner": 3, "moderator": 2, "member": 1}


@dataclass
class Said:
    seq: int
    at: float
    sender: str
    #: Of a message its text; of an event kind, by, user, detail.
    what: str | tuple[str, str, str, str]
    client_id: str = ""
    mentions: tuple[str, ...] = ()
    #: How many messages there were up to here.
    ordinal: int = 0
    reply_to: int | None = None
    #: The change of the chat with which it was last edited, or got a reaction; 0 if it was not.
    edited: int = 0
    #: Pairs of an emoji and a person.
    reactions: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_event(self) -> bool:
        return not isinstance(self.what, str)


@dataclass
class Person:
    role: str
    number: int
    visible_from: int
    read: int
    is_muted: bool = False


@dataclass
class Model:
    """Each method raises what the chat raises."""

    most: int
    age: float
    history: int | None
    max_members: int
    is_open: bool = True
    now: float = 0.0
    seq: int = 0
    joined: int = 0
    #: How many messages there were, and when the last entry came.
    counted: int = 0
    last_at: float = 0.0
    #: Up to here all is gone by the limits.
    cut: int = 0
    said: list[Said] = field(default_factory=list)
    #: (sender, client id) -> seq, of what is there or was deleted.
    sent: dict[tuple[str, str], int] = field(default_factory=dict)
    #: seq -> text, mentions, and what it replies to, as they were sent.
    asked: dict[int, tuple[str, list[str], int | None]] = field(default_factory=dict)
    members: dict[str, Person] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    #: Who left while they were muted.
    muted: set[str] = field(default_factory=set)
    is_closed: bool = False
    exists: bool = False
    #: How many changes of messages there were.
    changes: int = 0

    def __post_init__(self) -> None:
        self.age_at_creation = self.age

    def create(self, owner: str, others: list[str]) -> None:
        self.age = self.age_at_creation
        self.exists, self.is_closed, self.cut = True, False, self.seq
        before = self.seq
        self._event("created", owner)
        self.members = {person: Person("member", 0, before, before) for person in [owner, *others]}
        self.joined = 0
        for person in self.members.values():
            self.joined += 1
            person.number = self.joined
        self.members[owner].role, self.members[owner].read = "owner", self.seq

    def send(
        self, sender: str, text: str, client_id: str, mentions: list[str], reply_to: int | None = None
    ) -> tuple[int, bool]:
        person = self._member(sender)
        if known := self.sent.get((sender, client_id)):
            if self.asked[known][0] != text:
                raise ClientIdReused
            return known, True
        self._may_speak(sender)
        if reply_to is not None and reply_to > self.seq:
            raise MessageNotFound
        named = self._named(sender, mentions, reply_to)
        had_all = person.read == self.seq
        self._append(Said(0, 0, sender, text, client_id, named, reply_to=reply_to))
        self.sent[sender, client_id] = self.seq
        self.asked[self.seq] = text, mentions, reply_to
        if had_all:
            person.read = self.seq
        self.trim()
        return self.seq, False

    def edit(self, sender: str, seq: int, text: str, mentions: list[str]) -> None:
        found = self._message(sender, seq)
        if found.sender != sender:
            raise NotAllowed
        self._may_speak(sender)
        named = self._named(sender, mentions, found.reply_to)
        if (found.what, found.mentions) != (text, named):
            self.changes += 1
            found.what, found.mentions, found.edited = text, named, self.changes
        self.trim()

    def react(self, user: str, seq: int, emoji: str, *, is_on: bool) -> None:
        found = self._message(user, seq)
        self._may_speak(user)
        if ((emoji, user) in found.reactions) != is_on:
            self.changes += 1
            found.edited = self.changes
            (found.reactions.append if is_on else found.reactions.remove)((emoji, user))
        self.trim()

    def acknowledge(self, user: str, seq: int) -> int:
        person = self._member(user)
        person.read = max(person.read, min(seq, self.seq))
        return person.read

    def add(self, users: list[str], by: str | None) -> list[str]:
        if not self.exists:
            raise ChatNotFound
        new = [user for user in dict.fromkeys(users) if user not in self.members]
        is_joining = by is not None and by not in self.members and list(dict.fromkeys(users)) == [by]
        if by is not None and by not in self.members and not (is_joining and self.is_open):
            raise ChatNotFound
        if new and by in self.members and not self.is_open and self.members[str(by)].role == "member":
            raise NotAllowed
        if any(user in self.blocked for user in new):
            raise Blocked
        if is_joining and self.is_closed:
            raise ChatClosed
        if new and len(self.members) + len(new) > self.max_members:
            raise TooManyMembers
        visible_from = self._shown_from()
        for user in new:
            self._event("joined", by or "", user)
            self.joined += 1
            self.members[user] = Person("member", self.joined, visible_from, self.seq, user in self.muted)
            self.muted.discard(user)
        self.trim()
        return new

    def remove(self, user: str, by: str | None, kind: str) -> None:
        self._may(by, 0)
        if kind != "left":
            self._outrank(by, user)
        if user not in self.members and kind != "blocked":
            raise NotAMember
        is_new = kind == "blocked" and user not in self.blocked
        if user not in self.members and not is_new:
            return
        if kind == "blocked":
            self.blocked.add(user)
        gone = self.members.pop(user, None)
        if not self.members:
            self.exists, self.said, self.sent, self.blocked, self.muted = False, [], {}, set(), set()
            return
        if gone and gone.is_muted:
            self.muted.add(user)
        self._event(kind, by or "", user)
        if gone and gone.role == "owner" and not self._owners():
            heir = min(self.members, key=lambda each: self._place(each))
            self.members[heir].role = "owner"
            self._event("role", "", heir, "owner")
        self.trim()

    def unblock(self, user: str, by: str | None) -> None:
        self._may(by, 2)
        if user in self.blocked:
            self.blocked.remove(user)
            self._event("unblocked", by or "", user)
        self.trim()

    def set_muted(self, user: str, by: str | None, *, is_muted: bool) -> None:
        self._may(by, 0)
        self._outrank(by, user)
        if user in self.muted and not is_muted:
            self.muted.remove(user)
            self._event("unmuted", by or "", user)
            self.trim()
            return
        person = self._target(user)
        if is_muted or person.is_muted:
            person.is_muted = is_muted
            self._event("muted" if is_muted else "unmuted", by or "", user)
        self.trim()

    def set_role(self, user: str, role: str, by: str | None) -> None:
        self._may(by, 3)
        person = self._target(user)
        if person.role == role:
            return
        if person.role == "owner" and self._owners() == 1:
            raise NotAllowed
        person.role = role
        self._event("role", by or "", user, role)
        self.trim()

    def set_closed(self, by: str | None, *, is_closed: bool) -> None:
        self._may(by, 3)
        if self.is_closed != is_closed:
            self.is_closed = is_closed
            self._event("closed" if is_closed else "reopened", by or "")
        self.trim()

    def configure(self, age: float, by: str | None) -> None:
        self._may(by, 3)
        if self.age != age:
            self.trim()
            self.age = age
            self._event("configured", by or "")
        self.trim()

    def delete_message(self, seq: int, by: str | None) -> None:
        self._may(by, 0)
        found = self._message(by, seq)
        if by is not None and by != found.sender and self.members[by].role == "member":
            raise NotAllowed
        self.said.remove(found)
        self._event("deleted", by or "", "", str(seq))
        self.trim()

    def erase(self, person: str) -> int:
        if person in self.members:
            self.remove(person, person, "left")
        gone = [each for each in self.said if each.sender == person]
        self.said = [each for each in self.said if each.sender != person]
        for said in self.said:
            kept = [(emoji, who) for emoji, who in said.reactions if who != person]
            if kept != said.reactions:
                self.changes += 1
                said.reactions, said.edited = kept, self.changes
        if gone:
            self._event("erased", "", person)
        return len(gone)

    def visible(self, user: str | None) -> list[Said]:
        seen_from = 0 if user is None else self._member(user).visible_from
        return [each for each in self.said if each.seq > seen_from]

    def quote(self, user: str, said: Said) -> tuple[int, str, str] | None:
        if said.reply_to is None:
            return None
        quoted = [each for each in self.visible(user) if each.seq == said.reply_to and not each.is_event]
        return said.reply_to, quoted[0].sender if quoted else "", str(quoted[0].what) if quoted else ""

    def unread(self, user: str) -> list[Said]:
        read = self.members[user].read
        return [each for each in self.said if each.seq > read and not each.is_event and each.sender != user]

    def trim(self) -> None:
        """What the limits let go; called after each step, as what is too old is not shown."""
        while self.said and (len(self.said) > self.most or self.said[0].at + self.age <= self.now):
            self.cut = self.said.pop(0).seq
        if self.exists and not self.said and self.last_at + self.age <= self.now:
            self.cut = self.seq
        self.sent = {key: seq for key, seq in self.sent.items() if seq > self.cut}

    def _append(self, said: Said) -> None:
        self.seq += 1
        said.seq, said.at = self.seq, self.now
        self.counted += not said.is_event
        said.ordinal, self.last_at = self.counted, self.now
        self.said.append(said)

    def _event(self, kind: str, by: str, user: str = "", detail: str = "") -> None:
        self._append(Said(0, 0, "", (kind, by, user, detail)))

    def _member(self, user: str) -> Person:
        if not self.exists or user not in self.members:
            raise ChatNotFound
        return self.members[user]

    def _message(self, user: str | None, seq: int) -> Said:
        for each in self.visible(user):
            if each.seq == seq and not each.is_event:
                return each
        raise MessageNotFound

    def _may_speak(self, user: str) -> None:
        if self.is_closed:
            raise ChatClosed
        if self.members[user].is_muted:
            raise Muted

    def _named(self, sender: str, mentions: list[str], reply_to: int | None) -> tuple[str, ...]:
        """Whom a message mentions: members, among them who sent what it replies to."""
        quoted = [each.sender for each in self.visible(sender) if each.seq == reply_to]
        told = dict.fromkeys([*mentions, *quoted])
        return tuple(each for each in told if each in self.members and each != sender)

    def _target(self, user: str) -> Person:
        if user not in self.members:
            raise NotAMember
        return self.members[user]

    def _rank(self, by: str | None) -> int:
        return 4 if by is None else RANK[self.members[by].role]

    def _outrank(self, by: str | None, user: str) -> None:
        theirs = RANK[self.members[user].role] if user in self.members else 1
        if self._rank(by) <= theirs:
            raise NotAllowed

    def _may(self, by: str | None, least: int) -> None:
        if not self.exists or (by is not None and by not in self.members):
            raise ChatNotFound
        if self._rank(by) < least:
            raise NotAllowed

    def _owners(self) -> int:
        return sum(person.role == "owner" for person in self.members.values())

    def _place(self, user: str) -> tuple[int, int]:
        return -RANK[self.members[user].role], self.members[user].number

    def _shown_from(self) -> int:
        """The seq after which a joiner sees all: so many messages, with the events among and after them."""
        if self.history is None:
            return 0
        if self.history == 0:
            return self.seq
        before = self.counted - self.history
        return max((each.seq for each in self.said if each.ordinal <= before), default=0)
