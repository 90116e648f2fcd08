"""
The actions on a chat, on a person in it, and on a message of it.

Each is one call of the service as the system: the members see what was done, and Django's admin log says who did it.
Actions that remove messages need the permission to delete, all others the permission to change. No message text is
shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django import forms
from django.http import Http404, HttpRequest
from django.utils import timezone

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Verb, filled
from components.exceptions import ChatNotFound, MessageNotFound, NotAMember
from components.people.person import persons
from components.services.chat.admin.targets import Target, role_of
from components.templatetags.control_room import duration, grouped

FOR_GOOD = "good"
MUTES = [
    ("600", "10 minutes"),
    ("3600", "an hour"),
    ("86400", "a day"),
    ("604800", "a week"),
    (FOR_GOOD, "until unmuted"),
]
NO_WAY_BACK = "This cannot be undone."


class MuteForm(forms.Form):
    """How long a member is muted."""

    seconds = forms.ChoiceField(label="Duration", choices=MUTES, initial=MUTES[0][0])


class TrimForm(forms.Form):
    """The seq at which the history will begin."""

    before = forms.IntegerField(
        label="First message to keep",
        min_value=1,
        help_text="Messages have numbers; the Messages page shows them.",
        widget=forms.NumberInput(attrs={"autocomplete": "off"}),
    )


def _verb(
    name: str,
    label: str,
    *,
    title: str,
    effects: Sequence[str],
    idle: str,
    found: Callable[[Target], str | None],
    run: Callable[[Target], object],
    said: str,
    needs: str = "change",
    deletes: bool = False,
) -> Verb:
    """
    Return a verb. Its texts have placeholders for the chat, the person and the number of the message.

    *found* returns a sentence about the object of the action; None if there is nothing to do.
    """

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        target = Target.of(request)
        chat_id, what = target.row.info.id, found(target)

        def act() -> Done:
            try:
                run(target)
            except (ChatNotFound, NotAMember, MessageNotFound):  # somebody else did it first
                return Done()
            return Done(f"{target.written(said)} {what}")

        reads = target.seq and pages.may(request, "view_messages")
        return Action(
            of=chat_id,
            trail=[(f"Chat {target.row.title}", pages.find_url(chat_id))],
            title=target.written(title),
            effects=[what or "", *map(target.written, effects)],
            run=act if what else None,
            idle=target.written(idle),
            origin=pages.url("messages", chat=chat_id) if reads and name != "delete" else "",
            back=pages.url("changelist") if name == "delete" else "",
        )

    return Verb(name, label, ask, needs=needs, deletes=deletes)


def _mute(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    target, form = Target.of(request), filled(MuteForm, request)
    member, row = target.member, target.row
    if member is None:
        raise Http404(f"{target.user!r} is not in the chat {row.name}.")

    def run() -> Done:
        chosen = form.cleaned_data["seconds"]
        seconds = None if chosen == FOR_GOOD else float(chosen)
        try:
            target.chat.mute(target.user, seconds=seconds)
        except NotAMember:  # they left just now
            return Done()
        how_long = f"for {duration(seconds)}" if seconds else "until unmuted"
        return Done(f"{target.written('Muted {who} in the chat {chat}')} {how_long}. {role_of(member)}")

    return Action(
        of=row.info.id,
        trail=[(f"Chat {row.title}", pages.find_url(row.info.id))],
        title=target.written("Mute {who}"),
        effects=[role_of(member), "A muted member can read, and cannot send messages."],
        run=run,
        form=form,
    )


def _trim(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    target, form = Target.of(request), filled(TrimForm, request)
    row = target.row

    def run() -> Done:
        before = form.cleaned_data["before"]
        gone = target.chat.trim(before=before)
        said = f"Trimmed the chat {row.name}: removed {grouped(gone)} from before number {grouped(before)}."
        return Done(said if gone else "")

    return Action(
        of=row.info.id,
        trail=[(f"Chat {row.title}", pages.find_url(row.info.id))],
        title=f"Trim the chat {row.title}",
        effects=[
            f"It has {row.size}; the numbers {grouped(row.info.first_seq)} to {grouped(row.info.last_seq)}.",
            "Everything before the number that you give is removed, read or not. Members who have not read it see "
            "how much they have missed.",
            NO_WAY_BACK,
        ],
        run=run,
        form=form,
    )


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


CLOSE = _verb(
    "close",
    "Close",
    title="Close the chat {chat}",
    effects=["Its members can still read it. Nobody can send to it until it is opened again."],
    idle="Nothing to close: the chat {chat} is closed.",
    found=_of_an_open_chat,
    run=lambda target: target.chat.close(),
    said="Closed the chat {chat}.",
)
REOPEN = _verb(
    "reopen",
    "Open again",
    title="Open the chat {chat} again",
    effects=["Its members can send to it again."],
    idle="Nothing to open: the chat {chat} is open.",
    found=_of_a_closed_chat,
    run=lambda target: target.chat.reopen(),
    said="Opened the chat {chat} again.",
)
KICK = _verb(
    "kick",
    "Kick",
    deletes=True,
    title="Kick {who} out of the chat {chat}",
    effects=[
        "The messages of {who} stay.",
        "Members who may add others can add {who} again, and an open chat can be joined again. To prevent it, block.",
        "If the last owner leaves, the longest-standing moderator, or else member, becomes owner; if nobody is "
        "left, the chat is deleted.",
    ],
    idle="Nobody to kick: {who} is not in the chat {chat}.",
    found=_of_a_member,
    run=lambda target: target.chat.kick(target.user),
    said="Kicked {who} out of the chat {chat}.",
)
BLOCK = _verb(
    "block",
    "Block",
    deletes=True,
    title="Block {who} in the chat {chat}",
    effects=[
        "{who} is removed from it, and can neither join nor be added until unblocked.",
        "The messages of {who} stay.",
    ],
    idle="Nobody to block: {who} is blocked in the chat {chat}.",
    found=_of_a_person,
    run=lambda target: target.chat.block(target.user),
    said="Blocked {who} in the chat {chat}.",
)
UNBLOCK = _verb(
    "unblock",
    "Unblock",
    title="Unblock {who} in the chat {chat}",
    effects=["{who} can be added, and can join again. Unblocking alone does not make them a member."],
    idle="Nobody to unblock: {who} is not blocked in the chat {chat}.",
    found=_of_a_blocked_person,
    run=lambda target: target.chat.unblock(target.user),
    said="Unblocked {who} in the chat {chat}.",
)
UNMUTE = _verb(
    "unmute",
    "Unmute",
    title="Unmute {who} in the chat {chat}",
    effects=["{who} can send messages again."],
    idle="Nobody to unmute: {who} is not muted in the chat {chat}.",
    found=_of_a_muted_member,
    run=lambda target: target.chat.unmute(target.user),
    said="Unmuted {who} in the chat {chat}.",
)
DELETE_MESSAGE = _verb(
    "delete_message",
    "Delete",
    needs="delete",
    deletes=True,
    title="Delete message {seq} of the chat {chat}",
    effects=[
        "Its text and its data are removed, and all members see that it was deleted.",
        "Members may have read it already.",
        NO_WAY_BACK,
    ],
    idle="Nothing to delete: there is no message {seq} in the chat {chat} any more.",
    found=_of_a_message,
    run=lambda target: target.chat.delete_message(target.seq),
    said="Deleted message {seq} of the chat {chat}.",
)
DELETE = _verb(
    "delete",
    "Delete",
    needs="delete",
    deletes=True,
    title="Delete the chat {chat}",
    effects=[
        "All messages in it are removed, for all its members.",
        "A new chat with the same id continues the message numbers of this one.",
        NO_WAY_BACK,
    ],
    idle="Nothing to delete.",
    found=_of_a_chat,
    run=lambda target: target.chat.delete(),
    said="Deleted the chat {chat}.",
)
MUTE = Verb("mute", "Mute", _mute)
TRIM = Verb("trim", "Trim", _trim, needs="delete", deletes=True)
VERBS = (CLOSE, REOPEN, KICK, BLOCK, UNBLOCK, MUTE, UNMUTE, TRIM, DELETE_MESSAGE, DELETE)
