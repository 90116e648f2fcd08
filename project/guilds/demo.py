"""
Demo data: two guilds, with a word of welcome in the chat of each. All members of a guild are in its chat.

Existing data are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from components.services.chat import Chat
from project.market.models import Player

from . import chats, letters
from .models import Guild, Membership


@dataclass(frozen=True)
class Plan:
    """A guild of the demo."""

    motto: str
    members: tuple[str, ...]
    #: The message of the first member in the chat.
    welcome: str
    #: What is said then, and by whom.
    talk: tuple[tuple[str, str], ...]


GUILDS: Mapping[str, Plan] = {
    "Lantern Keepers": Plan(
        "Somebody has to leave a light on.",
        ("joe", "jack", "jeff"),
        "Welcome. Whoever passes the lake that moved: please bring oil.",
        (
            ("jeff", "Which lake? The map says *nothing* about a lake."),
            ("jack", "It moved. That is why it is not on the map."),
            ("jeff", "Then I bring oil and a boat."),
        ),
    ),
    "Salt and Thunder": Plan(
        "We sail when others wait.",
        ("jill", "june"),
        "Tide is at six. Bring rope, and no cheese.",
        (("june", "Not even a little cheese?"), ("jill", "Last time it sank us, june.")),
    ),
}


def load(players: Mapping[str, Player], others: Sequence[Player]) -> None:
    """Create what is missing; *others* join the guilds in turn."""
    homeless = [each for each in others if not hasattr(each, "membership")]
    for number, (name, plan) in enumerate(GUILDS.items()):
        guild, _ = Guild.objects.get_or_create(name=name, defaults={"motto": plan.motto})
        for member in plan.members:
            Membership.objects.get_or_create(player=players[member], defaults={"guild": guild})
        Membership.objects.bulk_create(
            Membership(guild=guild, player=each) for each in homeless[number :: len(GUILDS)]
        )


def greet() -> None:
    """Send the first messages in each chat, and a first letter, unless they exist. Raises RedisUnavailable."""
    for guild in Guild.objects.filter(name__in=GUILDS):
        planned = guild.memberships.filter(player__user__username__in=GUILDS[guild.name].members)
        mates = [each.player for each in planned.select_related("player__user")]
        if not mates:
            continue  # a member of staff has moved the player to another guild
        first, *others = mates
        everybody = guild.memberships.order_by("pk").values_list("player__user", flat=True)
        chats.enter(guild, first.user_id, *everybody)
        welcome = GUILDS[guild.name].welcome
        chat, people = Chat(guild.chat_id), {str(each): str(each.user_id) for each in mates}
        chat.send(people[str(first)], welcome, client_id="welcome")
        for number, (name, text) in enumerate(GUILDS[guild.name].talk):
            if name in people:
                chat.send(people[name], text, client_id=f"welcome-{number}")
        for player in others[:1]:
            if not letters.mailbox(player).info().pushed:
                letters.write(first, player, f"Good that you are with us, {player}.", client_id="welcome")
