"""
The actions on a chat, on a person in it, and on a message of it.

Each is one call of the service as the system: the members see what was done, and Django's admin log says who did it.
Actions that remove messages need the permission to delete, all others the permission to change. No message text is
shown.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import NOTHING, Action, Done, Verb, filled
from components.exceptions import ChatNotFound, MessageNotFound, NotAMember
from components.formatting import duration, grouped
from components.people.person import persons
from components.services.chat.admin.targets import Target, role_of

FOR_GOOD = "good"
MUTES = [
    ("600", _("10 minutes")),
    ("3600", _("an hour")),
    ("86400", _("a day")),
    ("604800", _("a week")),
    (FOR_GOOD, _("until somebody unmutes them")),
]
NO_WAY_BACK = _("This cannot be undone.")


class MuteForm(forms.Form):
    """How long a member is muted."""

    seconds = forms.ChoiceField(label=_("Duration"), choices=MUTES, initial=MUTES[0][0])


class TrimForm(forms.Form):
    """The seq at which the history will begin."""

    before = forms.IntegerField(
        label=_("Number of the first message to keep"),
        min_value=1,
        help_text=_("The page of the messages shows their numbers."),
        widget=forms.NumberInput(attrs={"autocomplete": "off"}),
    )


def _verb(
    name: str,
    label: str | Promise,
    *,
    title: str | Promise,
    effects: Sequence[str | Promise],
    idle: str | Promise = NOTHING,
    found: Callable[[Target], str | None],
    run: Callable[[Target, Mapping[str, Any]], object],
    said: str | Promise = "",
    form: type[forms.Form] = forms.Form,
    needs: str = "change",
    deletes: bool = False,
) -> Verb:
    """
    Return a verb. Its texts have the placeholders of Target.written(). *found* returns a sentence about the object of
    the action; None if there is nothing to do. *run* gets what was filled into the *form*, and returns what was done
    in a sentence, "" if nothing was, if it is not always what *said* says.
    """

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        target, asked = Target.of(request), filled(form, request)
        chat_id, what = target.row.info.id, found(target)

        def act() -> Done:
            try:
                done = run(target, asked.cleaned_data) if asked.fields else run(target, {})
            except (ChatNotFound, NotAMember, MessageNotFound):  # somebody else did it first
                return Done()
            sentence = done if isinstance(done, str) else target.written(said)
            return Done(sentence and f"{sentence} {what}")

        reads = target.seq and pages.may(request, "view_messages")
        return Action(
            of=chat_id,
            trail=[(target.row.trail, pages.find_url(chat_id))],
            title=target.written(title),
            effects=[what or "", *map(target.written, effects)],
            run=act if what else None,
            idle=target.written(idle),
            form=asked if asked.fields else None,
            origin=pages.url("messages", chat=chat_id) if reads and name != "delete" else "",
            back=pages.url("changelist") if name == "delete" else "",
        )

    return Verb(name, label, ask, needs=needs, deletes=deletes)


def _mute(target: Target, given: Mapping[str, Any]) -> str:
    seconds = None if given["seconds"] == FOR_GOOD else float(given["seconds"])
    target.chat.mute(target.user, seconds=seconds)
    said = gettext("Muted %(who)s in the chat %(chat)s until somebody unmutes them.")
    if seconds:
        said = gettext("Muted %(who)s in the chat %(chat)s for %(span)s.")
    return target.written(said, span=duration(seconds))


def _trim(target: Target, given: Mapping[str, Any]) -> str:
    gone = target.chat.trim(before=given["before"])
    said = gettext(
        "Deleted %(count)s old messages and events of the chat %(chat)s, those before number %(before)s."
    )
    return target.written(said, count=grouped(gone), before=grouped(given["before"])) if gone else ""


def _of_a_member(target: Target) -> str | None:
    return role_of(member) if (member := target.member) else None


def _of_a_muted_member(target: Target) -> str | None:
    return role_of(member) if (member := target.member) and member.muted_until else None


def _of_a_person(target: Target) -> str | None:
    if not target.user or target.is_blocked:
        return None
    return _of_a_member(target) or gettext("This person is not a member at the moment.")


def _of_a_blocked_person(target: Target) -> str | None:
    return gettext("Blocked until now.") if target.user and target.is_blocked else None


def _of_a_message(target: Target) -> str | None:
    message = target.message
    if message is None:
        return None
    sent = f"{timezone.localtime(message.sent_at):%Y-%m-%d %H:%M:%S %Z}"
    by = persons([message.sender])[message.sender]
    return gettext("It was sent by %(person)s, %(sent)s.") % {"person": by, "sent": sent}


CLOSE = _verb(
    "close",
    _("Close the chat"),
    title=_("Close the chat %(chat)s"),
    effects=[_("Its members can still read it. Nobody can send messages to it until it is reopened.")],
    idle=_("There is nothing to close: the chat %(chat)s is closed already."),
    found=lambda target: None if target.row.info.is_closed else target.row.size,
    run=lambda target, given: target.chat.close(),
    said=_("Closed the chat %(chat)s."),
)
REOPEN = _verb(
    "reopen",
    _("Reopen the chat"),
    title=_("Reopen the chat %(chat)s"),
    effects=[_("Its members can send messages to it again.")],
    idle=_("There is nothing to reopen: the chat %(chat)s is open already."),
    found=lambda target: target.row.size if target.row.info.is_closed else None,
    run=lambda target, given: target.chat.reopen(),
    said=_("Reopened the chat %(chat)s."),
)
KICK = _verb(
    "kick",
    _("Remove from the chat"),
    deletes=True,
    title=_("Remove %(who)s from the chat %(chat)s"),
    effects=[
        _("The messages of %(who)s stay."),
        _(
            "Members who may add others can add %(who)s again, and anyone can join an open chat again. To "
            "prevent that, block them."
        ),
        _(
            "If the last owner leaves, the longest-standing moderator, or else member, becomes owner; if nobody is "
            "left, the chat is deleted."
        ),
    ],
    idle=_("There is nobody to remove: %(who)s is not in the chat %(chat)s."),
    found=_of_a_member,
    run=lambda target, given: target.chat.kick(target.user),
    said=_("Removed %(who)s from the chat %(chat)s."),
)
BLOCK = _verb(
    "block",
    _("Remove and block"),
    deletes=True,
    title=_("Block %(who)s in the chat %(chat)s"),
    effects=[
        _(
            "%(who)s is removed from the chat, and can neither join it nor be added until somebody unblocks them."
        ),
        _("The messages of %(who)s stay."),
    ],
    idle=_("There is nobody to block: %(who)s is blocked in the chat %(chat)s already."),
    found=_of_a_person,
    run=lambda target, given: target.chat.block(target.user),
    said=_("Blocked %(who)s in the chat %(chat)s."),
)
UNBLOCK = _verb(
    "unblock",
    _("Unblock"),
    title=_("Unblock %(who)s in the chat %(chat)s"),
    effects=[_("%(who)s can be added, and can join again. Unblocking alone does not make them a member.")],
    idle=_("There is nobody to unblock: %(who)s is not blocked in the chat %(chat)s."),
    found=_of_a_blocked_person,
    run=lambda target, given: target.chat.unblock(target.user),
    said=_("Unblocked %(who)s in the chat %(chat)s."),
)
UNMUTE = _verb(
    "unmute",
    _("Unmute"),
    title=_("Unmute %(who)s in the chat %(chat)s"),
    effects=[_("%(who)s can send messages again.")],
    idle=_("There is nobody to unmute: %(who)s is not muted in the chat %(chat)s."),
    found=_of_a_muted_member,
    run=lambda target, given: target.chat.unmute(target.user),
    said=_("Unmuted %(who)s in the chat %(chat)s."),
)
DELETE_MESSAGE = _verb(
    "delete_message",
    _("Delete the message"),
    needs="delete",
    deletes=True,
    title=_("Delete message %(seq)s of the chat %(chat)s"),
    effects=[
        _("Its text and its data are deleted, and all members see that there was a message."),
        _("Members may already have read it."),
        NO_WAY_BACK,
    ],
    idle=_("There is nothing to delete: the chat %(chat)s has no message %(seq)s any more."),
    found=_of_a_message,
    run=lambda target, given: target.chat.delete_message(target.seq),
    said=_("Deleted message %(seq)s of the chat %(chat)s."),
)
DELETE = _verb(
    "delete",
    _("Delete the chat"),
    needs="delete",
    deletes=True,
    title=_("Delete the chat %(chat)s"),
    effects=[
        _("All its messages are deleted, for all its members."),
        _("If a chat with the same id is created, it continues the message numbers of this one."),
        NO_WAY_BACK,
    ],
    idle=_("There is nothing to delete."),
    found=lambda target: target.row.size,
    run=lambda target, given: target.chat.delete(),
    said=_("Deleted the chat %(chat)s."),
)
MUTE = _verb(
    "mute",
    _("Mute"),
    form=MuteForm,
    title=_("Mute %(who)s"),
    effects=[_("A muted member can read messages, but cannot send any.")],
    idle=_("%(user)r is not in the chat %(chat)s."),
    found=_of_a_member,
    run=_mute,
)
TRIM = _verb(
    "trim",
    _("Delete old messages"),
    needs="delete",
    deletes=True,
    form=TrimForm,
    title=_("Delete old messages of the chat %(title)s"),
    effects=[
        _(
            "Every message before the number that you give is deleted, whether it was read or not. Members who "
            "have not read them see how many they have missed."
        ),
        NO_WAY_BACK,
    ],
    found=lambda target: target.written(
        gettext(
            "It has %(members)s members, and %(messages)s messages and events with the numbers %(first_seq)s to "
            "%(last_seq)s."
        )
    ),
    run=_trim,
)
VERBS = (CLOSE, REOPEN, KICK, BLOCK, UNBLOCK, MUTE, UNMUTE, TRIM, DELETE_MESSAGE, DELETE)
