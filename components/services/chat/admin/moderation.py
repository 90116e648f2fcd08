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
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Verb, filled
from components.exceptions import ChatNotFound, MessageNotFound, NotAMember
from components.people.person import persons
from components.services.chat.admin.targets import Target, role_of
from components.templatetags.control_room import duration, grouped

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
    idle: str | Promise,
    found: Callable[[Target], str | None],
    run: Callable[[Target], object],
    said: str | Promise,
    needs: str = "change",
    deletes: bool = False,
) -> Verb:
    """
    Return a verb. Its texts have placeholders for the chat, the person and the number of the message. *found* returns
    a sentence about the object of the action; None if there is nothing to do.
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
            trail=[(target.row.trail, pages.find_url(chat_id))],
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
        raise Http404(
            gettext("%(user)r is not in the chat %(chat)s.") % {"user": target.user, "chat": row.name}
        )

    def run() -> Done:
        chosen = form.cleaned_data["seconds"]
        seconds = None if chosen == FOR_GOOD else float(chosen)
        try:
            target.chat.mute(target.user, seconds=seconds)
        except NotAMember:  # they left just now
            return Done()
        about = {"who": target.person, "chat": row.name, "span": duration(seconds)}
        said = gettext("Muted %(who)s in the chat %(chat)s until somebody unmutes them.")
        if seconds:
            said = gettext("Muted %(who)s in the chat %(chat)s for %(span)s.")
        return Done(f"{said % about} {role_of(member)}")

    return Action(
        of=row.info.id,
        trail=[(row.trail, pages.find_url(row.info.id))],
        title=target.written(gettext("Mute %(who)s")),
        effects=[role_of(member), gettext("A muted member can read messages, but cannot send any.")],
        run=run,
        form=form,
    )


def _trim(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    target, form = Target.of(request), filled(TrimForm, request)
    row = target.row

    def run() -> Done:
        before = form.cleaned_data["before"]
        gone = target.chat.trim(before=before)
        said = gettext(
            "Deleted %(count)s old messages and events of the chat %(chat)s, those before number %(before)s."
        )
        about = {"chat": row.name, "count": grouped(gone), "before": grouped(before)}
        return Done(said % about if gone else "")

    return Action(
        of=row.info.id,
        trail=[(row.trail, pages.find_url(row.info.id))],
        title=gettext("Delete old messages of the chat %(title)s") % {"title": row.title},
        effects=[
            gettext(
                "It has %(members)s members, and %(messages)s messages and events with the numbers %(first_seq)s to "
                "%(last_seq)s."
            )
            % row.figures,
            gettext(
                "Every message before the number that you give is deleted, whether it was read or not. Members who "
                "have not read them see how many they have missed."
            ),
            str(NO_WAY_BACK),
        ],
        run=run,
        form=form,
    )


def _of_a_member(target: Target) -> str | None:
    member = target.member
    return role_of(member) if member else None


def _of_a_muted_member(target: Target) -> str | None:
    member = target.member
    return role_of(member) if member and member.muted_until else None


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
    run=lambda target: target.chat.close(),
    said=_("Closed the chat %(chat)s."),
)
REOPEN = _verb(
    "reopen",
    _("Reopen the chat"),
    title=_("Reopen the chat %(chat)s"),
    effects=[_("Its members can send messages to it again.")],
    idle=_("There is nothing to reopen: the chat %(chat)s is open already."),
    found=lambda target: target.row.size if target.row.info.is_closed else None,
    run=lambda target: target.chat.reopen(),
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
    run=lambda target: target.chat.kick(target.user),
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
    run=lambda target: target.chat.block(target.user),
    said=_("Blocked %(who)s in the chat %(chat)s."),
)
UNBLOCK = _verb(
    "unblock",
    _("Unblock"),
    title=_("Unblock %(who)s in the chat %(chat)s"),
    effects=[_("%(who)s can be added, and can join again. Unblocking alone does not make them a member.")],
    idle=_("There is nobody to unblock: %(who)s is not blocked in the chat %(chat)s."),
    found=_of_a_blocked_person,
    run=lambda target: target.chat.unblock(target.user),
    said=_("Unblocked %(who)s in the chat %(chat)s."),
)
UNMUTE = _verb(
    "unmute",
    _("Unmute"),
    title=_("Unmute %(who)s in the chat %(chat)s"),
    effects=[_("%(who)s can send messages again.")],
    idle=_("There is nobody to unmute: %(who)s is not muted in the chat %(chat)s."),
    found=_of_a_muted_member,
    run=lambda target: target.chat.unmute(target.user),
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
    run=lambda target: target.chat.delete_message(target.seq),
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
    run=lambda target: target.chat.delete(),
    said=_("Deleted the chat %(chat)s."),
)
MUTE = Verb("mute", _("Mute"), _mute)
TRIM = Verb("trim", _("Delete old messages"), _trim, needs="delete", deletes=True)
VERBS = (CLOSE, REOPEN, KICK, BLOCK, UNBLOCK, MUTE, UNMUTE, TRIM, DELETE_MESSAGE, DELETE)
