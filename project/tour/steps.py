"""
The steps of the tour, which are ticked off by what the visitor does.

A step is done as soon as a page was seen, a form or a call of the API was accepted, or the market noted a purchase
(trace.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

QUEUES = "admin:components_queue_changelist"


@dataclass(frozen=True)
class Step:
    """Something to try. *by* is what does it: requests, each a method and the name of a view, and notes."""

    name: str
    title: str
    say: str
    #: The name of the view at which to begin.
    at: str
    by: frozenset[str]
    #: The page of the control room on which it is seen: its text, and the name of its view.
    room: tuple[str, str] | None = None


STEPS: Sequence[Step] = [
    Step(
        "buy",
        "Buy something",
        "Log in as jack and buy what joe sells. A lock sees to it that only one player can "
        "buy it, and a fencing token in the row refuses whoever lost the lock.",
        "market:browse",
        frozenset({"row"}),
        ("Locks", "admin:components_lock_changelist"),
    ),
    Step(
        "queues",
        "See the task of your purchase",
        "Your purchase put the task to send a mail into a queue. A worker has probably sent it already.",
        QUEUES,
        frozenset({f"GET {QUEUES}"}),
        ("Queues", QUEUES),
    ),
    Step(
        "mail",
        "Read the mail to the seller",
        "Joe is told that his item was sold. The demo keeps mails in a folder instead of sending them.",
        "tour:mails",
        frozenset({"GET tour:mails"}),
        ("Queues", QUEUES),
    ),
    Step(
        "sell",
        "Sell something",
        "Offer one of your items for an hour. A delayed task will end the offer.",
        "market:offer",
        frozenset({"POST market:offer"}),
        ("Periodic tasks", "admin:components_queue_periodic"),
    ),
    Step(
        "chat",
        "Talk in the chat",
        "Write in your guild's chat. Log in as joe in a private window: what you write is there at once.",
        "components:chats",
        frozenset({"POST components:api-messages", "POST components:chat"}),
        ("Chats", "admin:components_chat_changelist"),
    ),
    Step(
        "find",
        "Find somebody by name",
        "Type the first letters of a name, in any script.",
        "guilds:mail",
        frozenset({"GET components:api-book", "POST guilds:mail"}),
        ("Address books", "admin:components_addressbook_changelist"),
    ),
    Step(
        "flash",
        "Take part in the flash sale",
        "Many players want the same item, and no more are sold than there are. How many remain is read from "
        "a cached row.",
        "market:flash",
        frozenset({"piece"}),
        ("Cached rows", "admin:components_cachedrow_changelist"),
    ),
    Step(
        "break",
        "Break something",
        "Press one of the buttons below, and watch the control room.",
        "tour:shows",
        frozenset({"POST tour:show"}),
        ("Queues", QUEUES),
    ),
    Step(
        "counters",
        "See what was counted",
        "Everything that happens here is counted by second, minute, hour and day.",
        "admin:components_counter_changelist",
        frozenset({"GET admin:components_counter_changelist"}),
        ("Counters", "admin:components_counter_changelist"),
    ),
    Step(
        "traffic",
        "See where the players are",
        "The lines of the game's log are counted by country, region and city while they are written.",
        "players:today",
        frozenset({"GET players:today", "GET admin:components_logjob_traffic"}),
        ("Logs", "admin:components_logjob_changelist"),
    ),
]


def done_by(*what: str) -> list[str]:
    """Return the names of the steps that these requests and notes do."""
    return [step.name for step in STEPS if not step.by.isdisjoint(what)]
