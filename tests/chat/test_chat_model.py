"""
A chat against a model in plain Python: whatever is done in whatever order, by whomever, each member sees exactly the
sequence that he may, with exactly what is unread and who mentions him, and a stranger nothing.
"""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run
from redis import Redis

from components.exceptions import ChatExists, ChatNotFound, ComponentsError
from components.services.chat import Changes, Chat, ChatMessage, ChatSettings, Inbox, Position
from tests.chat.chat_model import Model, Said
from tests.support.chats import let_pass
from tests.support.twins import Awaited

PEOPLE = ["joe", "jack 7", "j:ill/é", "mary"]
# So long that what the test itself takes does not count.
AGE, STEPS = 100_000.0, (20_000.0, 60_000.0, 110_000.0)
MOST, ROOM = 14, 3

people = st.sampled_from(PEOPLE)
actors = st.sampled_from([*PEOPLE, None])
numbers = st.integers(0, 60)


class ChatMachine(RuleBasedStateMachine):
    def __init__(self, redis: Redis, awaits: asyncio.Runner | None) -> None:
        super().__init__()
        self.redis, self.awaits = redis, awaits
        redis.flushall()
        self.sends = 0

    def called(self, its: Chat | Inbox) -> Any:
        """Return what calls the methods, or their asynchronous twins."""
        return Awaited(its, self.awaits) if self.awaits else its

    @initialize(history=st.sampled_from([None, 0, 1, 3]), is_open=st.booleans())
    def begin(self, history: int | None, is_open: bool) -> None:
        self.settings = ChatSettings(
            history=history, max_messages=MOST, max_age=AGE, max_members=ROOM, rate_limit=0, is_open=is_open
        )
        self.model = Model(MOST, AGE, history, ROOM, is_open)
        self.chat = self.called(Chat("guild:7"))
        self.positions: dict[str, dict[str, Position]] = {person: {} for person in PEOPLE}
        #: What each client has got by changes(), in order, since its person came in.
        self.got: dict[str, list[int]] = {person: [] for person in PEOPLE}
        #: How many changes of messages there were when the client of a person came last.
        self.known = dict.fromkeys(PEOPLE, 0)
        self.create("joe", ["mary"])

    def same(self, act: Callable[[], Any], model: Callable[[], Any]) -> Any:
        """What both come to, an error among it."""
        expected, found = _outcome(model), _outcome(act)
        assert found == expected
        return found

    @rule(owner=people, others=st.lists(people, max_size=2))
    def create(self, owner: str, others: list[str]) -> None:
        members = [other for other in dict.fromkeys(others) if other != owner]
        act = lambda: Chat.create(owner, members=members, id=self.chat.id, settings=self.settings)  # noqa: E731
        if self.model.exists:
            assert _outcome(act) is ChatExists
        else:
            act()
            self.model.create(owner, members)

    @rule(
        sender=people,
        mentions=st.lists(people, max_size=3),
        again=st.integers(0, 9),
        back=st.none() | st.integers(-1, 12),
    )
    def send(self, sender: str, mentions: list[str], again: int, back: int | None) -> None:
        known = [(client_id, seq) for (who, client_id), seq in self.model.sent.items() if who == sender]
        self.sends += 1
        client_id, text = f"call {self.sends}", f"text {self.sends}"
        reply_to = None if back is None else max(1, self.model.seq - back)
        if known and again < 6:  # it is sent again, or something else with its client id
            client_id, seq = known[again % len(known)]
            said, mentions, reply_to = self.model.asked[seq]
            text = said if again < 4 else text

        def act() -> tuple[int, bool]:
            sent = self.chat.send(sender, text, mentions=mentions, client_id=client_id, reply_to=reply_to)
            return sent.seq, sent.is_duplicate

        self.same(act, lambda: self.model.send(sender, text, client_id, mentions, reply_to))

    @rule(
        sender=people,
        back=st.integers(0, 12),
        text=st.sampled_from(["one", "two"]),
        mentions=st.lists(people, max_size=3),
    )
    def edit(self, sender: str, back: int, text: str, mentions: list[str]) -> None:
        seq = max(0, self.model.seq - back)
        self.same(
            lambda: self.chat.edit(sender, seq, text, mentions=mentions) and None,
            lambda: self.model.edit(sender, seq, text, mentions),
        )

    @rule(user=people, back=st.integers(0, 12), emoji=st.sampled_from(["👍", "❤️"]), is_on=st.booleans())
    def react(self, user: str, back: int, emoji: str, is_on: bool) -> None:
        seq = max(0, self.model.seq - back)
        self.same(
            lambda: self.chat.react(user, seq, emoji, is_on=is_on),
            lambda: self.model.react(user, seq, emoji, is_on=is_on),
        )

    @rule(user=people, back=st.integers(-2, 12))
    def acknowledge(self, user: str, back: int) -> None:
        seq = max(0, self.model.seq - back)
        self.same(lambda: self.chat.acknowledge(user, seq), lambda: self.model.acknowledge(user, seq))

    @rule(user=people)
    def join(self, user: str) -> None:
        def model() -> None:
            self.model.add([user], user)

        self.same(lambda: self.chat.join(user), model)

    @rule(users=st.lists(people, min_size=1, max_size=3), by=actors)
    def add(self, users: list[str], by: str | None) -> None:
        self.same(lambda: self.chat.add(users, by=by), lambda: self.model.add(users, by))

    @rule(user=people)
    def leave(self, user: str) -> None:
        self.same(lambda: self.chat.leave(user), lambda: self.model.remove(user, user, "left"))

    @rule(user=people, by=actors, verb=st.sampled_from(["kick", "block"]))
    def remove(self, user: str, by: str | None, verb: str) -> None:
        act = getattr(self.chat, verb)
        self.same(lambda: act(user, by=by), lambda: self.model.remove(user, by, f"{verb}ed"))

    @rule(user=people, by=actors)
    def unblock(self, user: str, by: str | None) -> None:
        self.same(lambda: self.chat.unblock(user, by=by), lambda: self.model.unblock(user, by))

    @rule(user=people, by=actors, is_muted=st.booleans())
    def mute(self, user: str, by: str | None, is_muted: bool) -> None:
        act = self.chat.mute if is_muted else self.chat.unmute
        self.same(lambda: act(user, by=by), lambda: self.model.set_muted(user, by, is_muted=is_muted))

    @rule(user=people, by=actors, role=st.sampled_from(["owner", "moderator", "member"]))
    def set_role(self, user: str, by: str | None, role: str) -> None:
        self.same(lambda: self.chat.set_role(user, role, by=by), lambda: self.model.set_role(user, role, by))

    @rule(back=st.integers(0, 8), by=actors)
    def delete_message(self, back: int, by: str | None) -> None:
        seq = max(0, self.model.seq - back)
        self.same(lambda: self.chat.delete_message(seq, by=by), lambda: self.model.delete_message(seq, by))

    @rule(by=actors, is_closed=st.booleans())
    def close(self, by: str | None, is_closed: bool) -> None:
        act = self.chat.close if is_closed else self.chat.reopen
        self.same(lambda: act(by=by), lambda: self.model.set_closed(by, is_closed=is_closed))

    @rule(age=st.sampled_from([AGE, 3 * AGE, AGE / 2, None]), by=actors)
    def configure(self, age: float | None, by: str | None) -> None:
        self.same(
            lambda: self.chat.configure(max_age=age, by=by), lambda: self.model.configure(age or math.inf, by)
        )

    @rule(person=people)
    @precondition(lambda self: self.sends > 3)
    def erase(self, person: str) -> None:
        assert self.called(Inbox(person)).erase().messages == self.model.erase(person)

    @rule(seconds=st.sampled_from(STEPS))
    def time_passes(self, seconds: float) -> None:
        let_pass(self.redis, self.chat.id, seconds)
        self.model.now += seconds
        self.model.trim()

    @rule(person=people, limit=st.sampled_from([1, 3, 100]))
    def a_client_comes_for_what_is_new(self, person: str, limit: int) -> None:
        before = self.positions[person]
        changes = self.called(Inbox(person)).changes(before, limit=limit)
        self.positions[person] = dict(changes.positions)
        self.check_changes(person, before, changes, limit)
        if person not in self.model.members:
            assert (list(changes.chats), list(changes.gone)) == ([], list(before))
            return
        visible = self.model.visible(person)
        for news in changes.chats:
            after = before[self.chat.id].seq if before else 0
            new = [said.seq for said in visible if said.seq > after]
            expected = new[:limit] if before else new[-limit:]
            assert [message.seq for message in news.messages] == expected
            assert news.has_more == (bool(before) and len(new) > limit)
        if not changes.chats:
            assert before[self.chat.id].seq == self.model.seq

    def check_changes(self, person: str, before: dict[str, Position], changes: Changes, limit: int) -> None:
        """A client gets the messages that it has again, each once, if they were edited since it came."""
        had = before[self.chat.id].seq if before else 0
        visible = self.model.visible(person) if person in self.model.members else []
        edited = [said for said in visible if said.edited > self.known[person] and said.seq <= had]
        edited.sort(key=lambda said: said.edited)
        for news in changes.chats:
            assert [_said(message) for message in news.changed] == list(map(_told, edited[:limit]))
            is_all = len(edited) <= limit
            self.known[person] = self.model.changes if is_all else edited[limit - 1].edited
        if not changes.chats:
            assert not edited

    @invariant()
    def each_member_sees_what_the_model_says(self) -> None:
        for person in PEOPLE:
            if person in self.model.members:
                self.check(person)
            else:
                assert _outcome(lambda who=person: self.chat.history(who)) is ChatNotFound
                inbox = self.called(Inbox(person))
                assert inbox.fetch() == inbox.chats() == []

    def check(self, person: str) -> None:
        model, member = self.model, self.model.members[person]
        visible, unread = model.visible(person), model.unread(person)
        oldest = visible[0].seq if visible else model.seq + 1
        page = self.chat.history(person, limit=200)
        assert ([_said(each) for each in page.messages], page.has_more) == (list(map(_told, visible)), False)
        quotes = [model.quote(person, said) for said in visible]
        assert [_quote(message) for message in page.messages] == quotes
        assert page.oldest == oldest
        news = self.chat.news(person)
        assert (news.role, news.is_closed, news.members) == (member.role, model.is_closed, len(model.members))
        assert (news.last_seq, news.read_seq, news.oldest) == (model.seq, member.read, oldest)
        assert (news.unread, news.mentions) == (len(unread), sum(person in each.mentions for each in unread))
        fetched = self.called(Inbox(person)).fetch(limit=200)
        waiting = [_told(said) for said in visible if said.seq > member.read]
        assert len(fetched) == (member.read < model.seq)
        for found in fetched:
            assert [_said(each) for each in found.messages] == waiting
            assert list(map(_quote, found.messages)) == quotes[len(visible) - len(waiting) :]
            assert found.missed == max(0, model.cut - member.read)

    @invariant()
    def the_members_are_those_of_the_model(self) -> None:
        model = self.model
        if not model.exists:
            assert _outcome(self.chat.members) is ChatNotFound
            return
        found = self.chat.members()
        assert {each.user: (each.role, each.read_seq, each.muted_until is not None) for each in found} == {
            user: (person.role, person.read, person.is_muted) for user, person in model.members.items()
        }
        assert {each.user: each.unread for each in found} == {
            user: len(model.unread(user)) for user in model.members
        }
        assert self.chat.blocked().keys() == model.blocked
        assert self.chat.muted().keys() == model.muted


def _outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except ComponentsError as error:
        return type(error)


def _said(message: ChatMessage) -> tuple[Any, ...]:
    event = message.event
    what = (event.kind.value, event.by, event.user, event.detail) if event else message.text
    reactions = {emoji: list(who) for emoji, who in message.reactions.items()}
    return message.seq, message.sender, what, message.mentions, reactions


def _quote(message: ChatMessage) -> tuple[int, str, str] | None:
    quote = message.reply_to
    return (quote.seq, quote.sender, quote.text) if quote else None


def _told(said: Said) -> tuple[Any, ...]:
    reactions: dict[str, list[str]] = {}
    for emoji, who in said.reactions:
        reactions.setdefault(emoji, []).append(who)
    return said.seq, said.sender, said.what, said.mentions, reactions


@pytest.mark.parametrize("examples", [5, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("awaits", [False, True])
def test_it_behaves_as_the_model(redis: Redis, examples: int, awaits: bool) -> None:
    checks = settings(
        max_examples=examples // 2 if awaits else examples,
        stateful_step_count=50,
        phases=[Phase.generate],
        derandomize=True,
    )
    with asyncio.Runner() as runner:
        run(lambda: ChatMachine(redis, runner if awaits else None), settings=checks)
