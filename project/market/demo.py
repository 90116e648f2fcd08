"""
Demo data: three players with full bags, some of it on offer, two more in their guilds, and two members of staff; and
many others (townsfolk.py), so that a search has many names.

`load()` may be called again at any time: it leaves existing rows alone, and loads the address books from the tables.
It works without Redis as well; then a later sweep enqueues the tasks that end the listings, `manage.py rebuildindex`
fills the books, and `manage.py importgeoip` imports the table of addresses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import cache

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.utils import timezone

from components.exceptions import RedisUnavailable
from components.services.autocomplete.models import model_books
from project.guilds import demo as guilds
from project.players import demo as players

from . import flash, townsfolk
from .models import Item, Listing, Player
from .tasks import healed_by_sweep, plan

logger = logging.getLogger(__name__)

PLAYERS = {"joe": 2_400, "jack": 1_150, "jill": 860}
#: Players with empty bags, so that no guild is lonely.
OTHERS = {"jeff": 300, "june": 450}
PLAYER_PASSWORD = "demo"
ADMIN_PASSWORD = "admin"

Thing = tuple[str, str, int | None, int | None]

#: For each player, the things: kind, name, price if it is on offer, and for how many hours (None: until sold).
THINGS: dict[str, list[Thing]] = {
    "joe": [
        ("weapon", "Moonlit Dagger", 120, 24),
        ("weapon", "Axe of the Patient Woodcutter", 340, 72),
        ("weapon", "Slightly Haunted Longbow", None, None),
        ("armour", "Boots of Quiet Stairs", 95, None),
        ("armour", "Gauntlets of the Gentle Grip", None, None),
        ("armour", "Emberwool Cloak", 410, 24),
        ("potion", "Draught of Second Breakfast", 15, 24),
        ("potion", "Bottled Northern Wind", 60, None),
        ("potion", "Elixir of Clear Mornings", None, None),
        ("scroll", "Scroll of Minor Thunder", 75, 48),
        ("scroll", "Map to a Lake That Moved", 210, 168),
        ("curio", "Compass That Points Home", None, None),
        ("curio", "Jar of Captured Dusk", 180, 72),
    ],
    "jack": [
        ("weapon", "Sword of the Seventh Tide", 980, 168),
        ("weapon", "Rusty Halberd, Still Proud", 45, None),
        ("weapon", "Hammer of Small Repairs", None, None),
        ("armour", "Shield of the Last Door", 560, 72),
        ("armour", "Helmet with a View", 130, 24),
        ("armour", "Chainmail of a Thousand Knots", None, None),
        ("potion", "Vial of Borrowed Courage", 35, 24),
        ("potion", "Tonic Against Dragons, Mild", 240, 48),
        ("scroll", "Recipe for Invisible Soup", None, None),
        ("scroll", "Letter of Safe Passage", 150, None),
        ("curio", "Whistle Only Owls Can Hear", 55, 72),
        ("curio", "Glass Acorn", 90, None),
        ("curio", "Key to an Unknown Cellar", None, None),
    ],
    "jill": [
        ("weapon", "Staff of Unhurried Lightning", 1_450, 168),
        ("weapon", "Knife That Peels Anything", 25, 24),
        ("weapon", "Spear of the Heron", None, None),
        ("armour", "Bracers of Steady Hands", 275, 48),
        ("armour", "Cape of Fair Weather", None, None),
        ("potion", "Philtre of Perfect Pitch", 80, None),
        ("potion", "Ink of Invisible Ink", 40, 24),
        ("potion", "Antidote to Regret", None, None),
        ("scroll", "Scroll of Opening Jars", 20, None),
        ("scroll", "Star Chart of the Southern Cellar", 320, 72),
        ("scroll", "Ballad of the Absent King", None, None),
        ("curio", "Lantern of Found Paths", 700, 168),
        ("curio", "Marble with a Storm Inside", 110, 48),
    ],
}


def load() -> None:
    """Create what is missing, all of it or nothing; then enqueue the tasks that end the new listings."""
    listings = _create()
    with healed_by_sweep("the demo's listings"):
        for listing in listings:
            plan(listing)
        guilds.greet()
    with healed_by_sweep("the flash sale"):
        flash.look_after()
    try:
        for book in model_books().values():
            book.rebuild()
    except RedisUnavailable as error:
        logger.warning("the address books are not filled; run rebuildindex (%s)", error)
    players.load()


@transaction.atomic
def _create() -> list[Listing]:
    # Hashing is slow on purpose, so each password is hashed once, and only for new users.
    hashed = cache(make_password)
    _user("admin", lambda: hashed(ADMIN_PASSWORD), is_staff=True, is_superuser=True)
    _user("guard", lambda: hashed(PLAYER_PASSWORD), is_staff=True)
    # Whoever takes the tour may look at the control room, but not into what others write to each other.
    watchers, _ = Group.objects.get_or_create(name="Watchers")
    watchers.permissions.set(
        Permission.objects.filter(content_type__app_label="components", codename__startswith="view_").exclude(
            codename__startswith="view_messages"
        )
    )
    listings = []
    players = {}
    for name, funds in {**PLAYERS, **OTHERS}.items():
        user = _user(name, lambda: hashed(PLAYER_PASSWORD), is_staff=name in PLAYERS)
        if name in PLAYERS:
            user.groups.add(watchers)
        players[name], _ = Player.objects.get_or_create(user=user, defaults={"funds": funds})
        listings += _fill_bag(players[name], THINGS.get(name, []))
    others = townsfolk.settle()
    listings += townsfolk.sell(others)
    guilds.load(players, others)
    return listings


def _user(name: str, password: Callable[[], str], **flags: bool) -> User:
    found = User.objects.filter(username=name).first()
    return found or User.objects.create(
        username=name, email=f"{name}@fakegame.example", password=password(), **flags
    )


def _fill_bag(player: Player, things: list[Thing]) -> list[Listing]:
    known = set(Item.objects.filter(name__in=[thing[1] for thing in things]).values_list("name", flat=True))
    new = [thing for thing in things if thing[1] not in known]
    items = Item.objects.bulk_create(Item(kind=kind, name=name, owner=player) for kind, name, _, _ in new)
    now = timezone.now()
    return Listing.objects.bulk_create(
        Listing(
            item=item,
            seller=player,
            price=price,
            opens_at=now,
            ends_at=now + timedelta(hours=hours) if hours else None,
        )
        for item, (_, _, price, hours) in zip(items, new, strict=True)
        if price
    )
