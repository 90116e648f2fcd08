"""The sentences and statuses with which the page answers refused requests."""

import math

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from components import exceptions

_REFUSALS: dict[type[Exception], tuple[Promise, int]] = {
    exceptions.ChatClosed: (_("The chat is closed: nothing can be sent to it."), 409),
    exceptions.ChatExists: (_("Another chat was created with this form."), 409),
    exceptions.ClientIdReused: (
        _("Something else was sent with this form before, and is stored. Send this again if you want both."),
        409,
    ),
    exceptions.Muted: (_("You are muted in this chat for now."), 403),
    exceptions.Blocked: (
        _("A person who was blocked from a chat cannot come back until they are unblocked."),
        403,
    ),
    exceptions.NotAllowed: (_("Your role in the chat does not include this."), 403),
    exceptions.NotAMember: (_("They are no longer in the chat."), 409),
    exceptions.MessageNotFound: (_("The message is no longer there."), 409),
    exceptions.TooManyMembers: (_("The chat would have too many members."), 422),
    exceptions.TooManyChats: (
        _(
            "You have reached the limit of chats to create, or somebody has reached the limit of chats to be in."
        ),
        409,
    ),
    exceptions.TooManyBlocked: (_("Too many people are blocked in this chat. Unblock others first."), 409),
    exceptions.ChatNotFound: (_("You are no longer in this chat."), 404),
    exceptions.InvalidName: (_("Nobody can have this name: a name is text of 1 to 500 characters."), 400),
    exceptions.InvalidMessage: (
        _("The message is empty, too long, or contains characters that cannot be stored."),
        422,
    ),
}


def refusal(error: exceptions.ComponentsError) -> tuple[str, int]:
    """Return the sentence and the status. Raises *error* if it is a fault of the program."""
    if isinstance(error, exceptions.TooFast):
        seconds = max(1, math.ceil(error.retry_after))
        text = ngettext(
            "That was too fast. Try again in %(count)s second.",
            "That was too fast. Try again in %(count)s seconds.",
            seconds,
        )
        return text % {"count": seconds}, 429
    for kind, (sentence, status) in _REFUSALS.items():
        if isinstance(error, kind):
            return str(sentence), status
    raise error
