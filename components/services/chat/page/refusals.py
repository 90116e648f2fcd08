"""The sentences and statuses with which the page answers refused requests."""

from __future__ import annotations

import math

from components import exceptions

_REFUSALS: dict[type[Exception], tuple[str, int]] = {
    exceptions.ChatClosed: ("The chat is closed: nothing can be sent to it.", 409),
    exceptions.ChatExists: ("Another chat was created with this form.", 409),
    exceptions.Muted: ("You are muted in this chat for now.", 403),
    exceptions.Blocked: (
        "A person who was blocked from a chat cannot come back until they are unblocked.",
        403,
    ),
    exceptions.NotAllowed: ("Your role in the chat does not include this.", 403),
    exceptions.NotAMember: ("They are no longer in the chat.", 409),
    exceptions.MessageNotFound: ("The message is no longer there.", 409),
    exceptions.TooManyMembers: ("The chat would have too many members.", 422),
    exceptions.TooManyChats: (
        "You have reached the limit of chats to create, or somebody has reached the limit of chats to be in.",
        409,
    ),
    exceptions.TooManyBlocked: ("Too many people are blocked in this chat. Unblock others first.", 409),
    exceptions.ChatNotFound: ("You are no longer in this chat.", 404),
    exceptions.InvalidName: ("Nobody can have this name: a name is text of 1 to 500 characters.", 400),
    exceptions.InvalidMessage: (
        "The message is empty, too long, or contains characters that cannot be stored.",
        422,
    ),
}


def refusal(error: exceptions.ComponentsError) -> tuple[str, int]:
    """Return the sentence and the status. Raises *error* if it is a fault of the program."""
    if isinstance(error, exceptions.TooFast):
        seconds = max(1, math.ceil(error.retry_after))
        return f"That was too fast. Try again in {seconds} second{'s' if seconds > 1 else ''}.", 429
    for kind, (sentence, status) in _REFUSALS.items():
        if isinstance(error, kind):
            return sentence, status
    raise error
