"""Any sequence of calls, against a mailbox that is a few lists in Python."""

import asyncio
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run
from redis import Redis

from components.exceptions import Blocked, MailboxFull
from components.services.mailboxes import Fate, Mailbox
from tests.support.twins import Awaited

LIMIT = 4
SENDERS = ("joe", "jill")


class Mailboxes(RuleBasedStateMachine):
    """What the model knows: the ids that wait in order, which of them were handed out, and each one's fate."""

    def __init__(self, redis: Redis, awaits: asyncio.Runner | None) -> None:
        super().__init__()
        self.awaits = awaits
        redis.flushall()
        self.there: list[int] = []
        #: Which pull handed out a message first.
        self.handed: dict[int, int] = {}
        self.pulls = 0
        self.fates: dict[int, Fate] = {}
        self.senders: dict[int, str] = {}
        self.pushed: dict[tuple[str, str], int] = {}
        self.blocked: set[str] = set()
        #: Dropped in all; as the recipient knows; as it was told last, and up to which id that was together with.
        self.dropped = self.known = 0
        self.told: tuple[int, int] = (0, 0)

        self.mailbox = self.called(Mailbox("jack", limit=LIMIT))

    def called(self, mailbox: Mailbox) -> Any:
        """Return what calls the methods, or their asynchronous twins."""
        return Awaited(mailbox, self.awaits) if self.awaits else mailbox

    @rule(sender=st.sampled_from(SENDERS), client_id=st.sampled_from("abcdefgh"), drops=st.booleans())
    def push(self, sender: str, client_id: str, drops: bool) -> None:
        policy = "drop_oldest" if drops else "refuse"
        mailbox = self.called(Mailbox("jack", limit=LIMIT, when_full=policy))
        text, key = f"{sender} {client_id}", (sender, client_id)
        if key in self.pushed:
            again = mailbox.push(sender, text, client_id=client_id)
            assert (again.id, again.is_duplicate, again.dropped) == (self.pushed[key], True, ())
        elif sender in self.blocked:
            with pytest.raises(Blocked):
                mailbox.push(sender, text, client_id=client_id)
        elif len(self.there) >= LIMIT and not drops:
            with pytest.raises(MailboxFull):
                mailbox.push(sender, text, client_id=client_id)
        else:
            gone = self.there[: max(0, len(self.there) - LIMIT + 1)]
            pushed = mailbox.push(sender, text, client_id=client_id)
            assert (pushed.is_duplicate, pushed.dropped) == (False, tuple(gone))
            assert pushed.id > max(self.fates, default=0)
            self._drop(gone)
            self.there.append(pushed.id)
            self.fates[pushed.id], self.senders[pushed.id] = Fate.WAITING, sender
            self.pushed[key] = pushed.id

    @rule(limit=st.integers(1, LIMIT + 1) | st.none(), newest=st.booleans(), data=st.data())
    def pull(self, limit: int | None, newest: bool, data: st.DataObject) -> None:
        after = data.draw(st.none() | st.sampled_from(sorted(self.fates) or [0]))
        if after is not None:
            self._acknowledge(after)
        count = len(self.there) if limit is None else limit
        expected = self.there[-count:] if newest else self.there[:count]

        mails = self.mailbox.pull(limit, after=after, newest=newest)

        self.pulls += 1
        assert [mail.id for mail in mails] == expected
        assert [mail.is_again for mail in mails] == [each in self.handed for each in expected]
        assert [mail.sender for mail in mails] == [self.senders[each] for each in expected]
        assert mails.missed == self.dropped - self.known
        for each in expected:
            self.handed.setdefault(each, self.pulls)
            self.fates[each] = Fate.HANDED_OUT
        if expected:
            self.told = (self.dropped, expected[-1])

    @precondition(lambda self: self.fates)
    @rule(data=st.data())
    def see(self, data: st.DataObject) -> None:
        message = data.draw(st.sampled_from(sorted(self.fates)))

        assert self.mailbox.status(message, sender=self.senders[message]).fate == self.fates[message]

    @precondition(lambda self: self.fates)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        upto = data.draw(st.sampled_from(sorted(self.fates)))

        assert self.mailbox.acknowledge(upto) == self._acknowledge(upto)

    @rule()
    def clear(self) -> None:
        assert self.mailbox.clear() == len(self.there)
        self._drop(list(self.there))

    @rule(sender=st.sampled_from(SENDERS))
    def block(self, sender: str) -> None:
        self.mailbox.block(sender)
        self.blocked.add(sender)

    @rule(sender=st.sampled_from(SENDERS))
    def unblock(self, sender: str) -> None:
        self.mailbox.unblock(sender)
        self.blocked.discard(sender)

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        info = self.mailbox.info()
        assert [mail.id for mail in self.mailbox.peek(None)] == self.there
        assert (info.depth, info.handed_out) == (len(self.there), len(self.handed))
        assert (info.pushed, info.dropped) == (len(self.fates), self.dropped)
        assert info.acknowledged == list(self.fates.values()).count(Fate.ACKNOWLEDGED)
        assert set(self.mailbox.blocked()) == self.blocked
        assert self.mailbox.missed() == self.dropped - self.known

    def teardown(self) -> None:
        assert {each: self.mailbox.status(each).fate for each in self.fates} == self.fates

    def _acknowledge(self, upto: int) -> int:
        if upto not in self.handed:
            return 0
        told, message = self.told
        seen = {each for each, pull in self.handed.items() if each <= upto and pull <= self.handed[upto]}
        if message in seen:
            self.known = told
        gone = sorted(seen)
        for each in gone:
            self.there.remove(each)
            del self.handed[each]
            self.fates[each] = Fate.ACKNOWLEDGED
        return len(gone)

    def _drop(self, gone: list[int]) -> None:
        for each in gone:
            self.there.remove(each)
            self.handed.pop(each, None)
            self.fates[each] = Fate.DROPPED
        self.dropped += len(gone)


@pytest.mark.parametrize("examples", [8, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("awaits", [False, True])
def test_any_sequence_of_calls_does_what_the_model_says(redis: Redis, examples: int, awaits: bool) -> None:
    checks = settings(
        max_examples=examples // 2 if awaits else examples,
        stateful_step_count=30,
        phases=[Phase.generate],
        derandomize=True,
    )
    with asyncio.Runner() as runner:
        run(lambda: Mailboxes(redis, runner if awaits else None), settings=checks)
