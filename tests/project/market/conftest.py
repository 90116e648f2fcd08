"""Three players, and short words for what the tests of the market say often."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from components.services.queues import TaskInfo, TaskQueue
from project.market.models import Item, Listing, Player


def player(name: str, funds: int = 1_000) -> Player:
    user = User.objects.create(username=name, email=f"{name}@fakegame.example")
    return Player.objects.create(user=user, funds=funds)


@pytest.fixture
def joe(db: None) -> Player:
    return player("joe")


@pytest.fixture
def jack(db: None) -> Player:
    return player("jack")


@pytest.fixture
def jill(db: None) -> Player:
    return player("jill")


@pytest.fixture
def dagger(joe: Player) -> Item:
    return Item.objects.create(name="Moonlit Dagger", kind=Item.Kind.WEAPON, owner=joe)


@pytest.fixture
def listing(dagger: Item) -> Listing:
    """Joe's dagger, for 100 gold, until it is sold."""
    return Listing.objects.create(item=dagger, seller=dagger.owner, price=100)


def as_player(who: Player) -> Client:
    client = Client()
    client.force_login(who.user)
    return client


def text(response: HttpResponse) -> str:
    """The words of a page, as a reader sees them."""
    words = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"\s+", " ", words).replace("&#x27;", "'")


def opens_in(listing: Listing, **span: float) -> Listing:
    """Move the opening; into the past, it is as if no task had opened the listing in time."""
    listing.opens_at = timezone.now() + timedelta(**span)
    listing.status = Listing.Status.SCHEDULED
    listing.save()
    return listing


def ends_in(listing: Listing, **span: float) -> Listing:
    """Move the end; into the past, it is as if no task had ended the listing in time."""
    listing.ends_at = timezone.now() + timedelta(**span)
    listing.opens_at = min(listing.opens_at, listing.ends_at - timedelta(hours=1))
    listing.save()
    return listing


def queued() -> list[TaskInfo]:
    """All tasks that wait, the market's guard aside."""
    queue = TaskQueue()
    waiting = [
        task for name in queue.names() for state in ("ready", "delayed") for task in queue.tasks(name, state)
    ]
    return [task for task in waiting if task.name != "project.market.tasks.sweep"]


def names(tasks: list[TaskInfo]) -> set[str]:
    return {task.name.rpartition(".")[2] for task in tasks}
