"""Three players, and short words for what the tests of the market say often."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from components.embedded import EmbeddedServer
from components.services.queues import TaskInfo, TaskQueue
from project.market.models import Item, Listing, Player
from tests.project.market.crowd import NOWHERE, Crowd, Listings
from tests.support.postgres import PostgresServer

Enlist = Callable[..., Listing]


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


#: The DATABASE_URL of a market that is prepared and never traded at, and its listings.
Template = tuple[str, Listings]


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    url = f"sqlite:///{tmp_path_factory.mktemp('market') / 'template.sqlite3'}"
    return url, Crowd(url, NOWHERE).prepare()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> Template:
    url = postgres_server.new_database()
    return url, Crowd(url, NOWHERE).prepare()


@pytest.fixture(params=["sqlite", "postgres"])
def crowd(request: pytest.FixtureRequest, redis_server: EmbeddedServer, tmp_path: Path) -> Crowd:
    """A crowd at a market of its own: a copy, since to make all tables takes longer than most tests."""
    template, listings = request.getfixturevalue(f"{request.param}_template")
    if request.param == "sqlite":
        file = shutil.copy(template.removeprefix("sqlite:///"), tmp_path / "market.sqlite3")
        url = f"sqlite:///{file}"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.new_database(template.rpartition("/")[2])
    return Crowd(url, redis_server.url, listings)
