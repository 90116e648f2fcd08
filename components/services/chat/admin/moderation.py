"""
What can be done to a chat, to a person in it, to a message of it. A Verb says what it needs and what its effects are.

Each is one call of the service, as the system: the members see that it was done, Django's log says who did it. What
removes messages needs the permission to delete, all else the one to change. No text of a message is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from django import forms
from django.utils import timezone

from components.control_room.pages import Permission
from components.control_room.pages import Question as Action
from components.control_room.persons import persons
from components.control_room.verbs import Done
from components.exceptions import ChatNotFound, MessageNotFound, NotAMember
from components.models import Anchor
from components.services.chat.admin.targets import Target, role_of

FOR_GOOD = "good"
MUTES = [
    ("600", "10 minutes"),
    ("3600", "an hour"),
    ("86400", "a day"),
    ("604800", "a week"),
    (FOR_GOOD, "until unmuted"),
]


@dataclass(frozen=True)
class Verb:
    """Something that can be done to a chat."""

    #: Of its page, and its permission.
    name: str
    needs: Permission
    button: str
    #: With places for the chat, the person and the number of the message.
    title: str
    effects: Sequence[str]
    idle: str
    #: What there is to do it to, in half a sentence; None if there is nothing.
    found: Callable[[Target], str | None]
    run: Callable[[Target], object]
    said: str

    def action(self, target: Target, subject: Anchor, back: str, after: str = "") -> Action:
        """Return the action to be confirmed. It leads *back*, or to *after* if what the visitor came from is gone."""
        found = self.found(target)
        effects = [found, *map(target.written, self.effects)] if found else self.effects
        return Action(
            title=target.written(self.title),
            button=self.button,
            effects=effects,
            run=partial(self._act, target, found),
            subject=subject,
            idle=target.written(self.idle),
            is_idle=found is None,
            back=after or back,
            origin=back,
        )

    def _act(self, target: Target, found: str | None) -> Done:
        if found is None:
            return Done()
        try:
            self.run(target)
        except (ChatNotFound, NotAMember, MessageNotFound):  # somebody was faster
            return Done()
        return Done(f"{target.written(self.said)} {found}")


def _of_an_open_chat(target: Target) -> str | None:
    return None if target.row.info.is_closed else f"It has {target.row.size}."


def _of_a_closed_chat(target: Target) -> str | None:
    return f"It has {target.row.size}." if target.row.info.is_closed else None


def _of_a_chat(target: Target) -> str | None:
    return f"It has {target.row.size}."


def _of_a_member(target: Target) -> str | None:
    member = target.member
    return role_of(member) if member else None


def _of_a_muted_member(target: Target) -> str | None:
    member = target.member
    return role_of(member) if member and member.muted_until else None


def _of_a_person(target: Target) -> str | None:
    if not target.user or target.is_blocked:
        return None
    return _of_a_member(target) or "Not a member now."


def _of_a_blocked_person(target: Target) -> str | None:
    return "Blocked until now." if target.user and target.is_blocked else None


def _of_a_message(target: Target) -> str | None:
    message = target.message
    if message is None:
        return None
    sent = f"{timezone.localtime(message.sent_at):%Y-%m-%d %H:%M:%S %Z}"
    return f"It was sent by {persons([message.sender])[message.sender]}, {sent}."


CLOSE = Verb(
    name="close",
    needs="change",
    button="Close",
    title="Close the chat {chat}",
    effects=["It stays, and its members can read it. Nobody can send to it until it is opened again."],
    idle="Nothing to close: the chat {chat} is closed.",
    found=_of_an_open_chat,
    run=lambda target: target.chat.close(),
    said="Closed the chat {chat}.",
)
REOPEN = Verb(
    name="reopen",
    needs="change",
    button="Open again",
    title="Open the chat {chat} again",
    effects=["Its members can send to it again."],
    idle="Nothing to open: the chat {chat} is open.",
    found=_of_a_closed_chat,
    run=lambda target: target.chat.reopen(),
    said="Opened the chat {chat} again.",
)
KICK = Verb(
    name="kick",
    needs="change",
    button="Kick",
    title="Kick {who} out of the chat {chat}",
    effects=[
        "The messages of {who} stay.",
        "Members who may add others can add {who} again, and an open chat can be joined again. To prevent it, block.",
        "If the last owner goes, the moderator or else the member who is in it longest becomes owner; if nobody is "
        "left, the chat goes.",
    ],
    idle="Nobody to kick: {who} is not in the chat {chat}.",
    found=_of_a_member,
    run=lambda target: target.chat.kick(target.user),
    said="Kicked {who} out of the chat {chat}.",
)
BLOCK = Verb(
    name="block",
    needs="change",
    button="Block",
    title="Block {who} in the chat {chat}",
    effects=[
        "{who} is not in it any more, and can neither join nor be added until unblocked.",
        "The messages of {who} stay.",
    ],
    idle="Nobody to block: {who} is blocked in the chat {chat}.",
    found=_of_a_person,
    run=lambda target: target.chat.block(target.user),
    said="Blocked {who} in the chat {chat}.",
)
UNBLOCK = Verb(
    name="unblock",
    needs="change",
    button="Unblock",
    title="Unblock {who} in the chat {chat}",
    effects=["{who} can be added and join again. This alone does not make them a member."],
    idle="Nobody to unblock: {who} is not blocked in the chat {chat}.",
    found=_of_a_blocked_person,
    run=lambda target: target.chat.unblock(target.user),
    said="Unblocked {who} in the chat {chat}.",
)
UNMUTE = Verb(
    name="unmute",
    needs="change",
    button="Unmute",
    title="Unmute {who} in the chat {chat}",
    effects=["{who} can send messages again."],
    idle="Nobody to unmute: {who} is not muted in the chat {chat}.",
    found=_of_a_muted_member,
    run=lambda target: target.chat.unmute(target.user),
    said="Unmuted {who} in the chat {chat}.",
)
DELETE_MESSAGE = Verb(
    name="delete_message",
    needs="delete",
    button="Delete",
    title="Delete message {seq} of the chat {chat}",
    effects=[
        "Its text and its data are gone, and all members see that it was deleted.",
        "Members may have read it already.",
        "This cannot be undone.",
    ],
    idle="Nothing to delete: there is no message {seq} in the chat {chat} any more.",
    found=_of_a_message,
    run=lambda target: target.chat.delete_message(target.seq),
    said="Deleted message {seq} of the chat {chat}.",
)
DELETE = Verb(
    name="delete",
    needs="delete",
    button="Delete",
    title="Delete the chat {chat}",
    effects=[
        "All messages in it are gone, for all its members.",
        "A chat that is created under the same id goes on counting where this one ended.",
        "This cannot be undone.",
    ],
    idle="Nothing to delete.",
    found=_of_a_chat,
    run=lambda target: target.chat.delete(),
    said="Deleted the chat {chat}.",
)
VERBS = (CLOSE, REOPEN, KICK, BLOCK, UNBLOCK, UNMUTE, DELETE_MESSAGE, DELETE)


class MuteForm(forms.Form):
    """For how long a member is muted."""

    seconds = forms.ChoiceField(label="For how long", choices=MUTES, initial=MUTES[0][0])


class TrimForm(forms.Form):
    """Where the history will begin."""

    before = forms.IntegerField(
        label="First number to stay",
        min_value=1,
        help_text="Messages have numbers; the Messages page shows them.",
        widget=forms.NumberInput(attrs={"autocomplete": "off"}),
    )
