"""What the examples use without defining it: the imports of a project's files, and what is stored already."""

import gzip
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import models
from django.test import RequestFactory
from django.urls import include, path
from django.utils import timezone

from components.kit.client import get_client
from components.people import Users
from components.services.autocomplete import AddressBook
from components.services.autocomplete.access import Readers
from components.services.chat import Chat
from components.services.locks.models import FencedModel
from components.services.mailboxes import Mailbox
from components.services.queues import task
from components.services.rows.models import CachedRow
from components.testing import run_tasks
from tests.docs.shop.models import Membership, Order, Player, Profile, Sale
from tests.support.geo import city, import_networks
from tests.support.traffic import count


def declare_item(*bases: type[models.Model]) -> type[models.Model]:
    """Declare the item of pages that declare none, or declare it later."""
    columns: dict[str, Any] = {
        "__module__": "tests.docs.shop.models",
        "name": models.CharField(max_length=80),
        "stock": models.IntegerField(default=1),
        "price": models.IntegerField(default=1),
        "owner": models.ForeignKey(Player, null=True, on_delete=models.CASCADE, related_name="+"),
        "seller": models.ForeignKey(Player, null=True, on_delete=models.CASCADE, related_name="+"),
    }
    return type("Item", bases, columns)


def of_page(page: str) -> dict[str, Any]:
    """Return what the files of a project import."""
    return {
        "Item": declare_item(CachedRow) if page == "http-api" else declare_item(FencedModel),
        "Membership": Membership,
        "Order": Order,
        "Player": Player,
        "Profile": Profile,
        "Counter": Counter,
        "Readers": Readers,
        "User": User,
        "Users": Users,
        "admin": admin,
        "forms": forms,
        "include": include,
        "models": models,
        "path": path,
        "task": task,
        "timedelta": timedelta,
    }


def stored_for(page: str, folder: Path) -> dict[str, Any]:
    """Store what the examples of *page* expect, and return the values that they name."""
    user = User.objects.create_user("joe")
    buyer = Player.objects.create(user=user, name="Ann Smith")
    Membership.objects.create(player=buyer, guild=7)
    if prepare := _PREPARED.get(page):
        prepare(folder)
    return {
        "BASE_DIR": folder,
        "CACHES": {"components": {}},
        "COMPONENTS": {},
        "DATABASES": {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "db.sqlite3"}},
        "DEBUG": True,
        "INSTALLED_APPS": [],
        "MIDDLEWARE": [],
        "TASKS": {},
        "buyer": buyer,
        "client": get_client(),
        "client_id": uuid.uuid4().hex,
        "make_report": lambda: b"a report",
        "monday": timezone.now() - timedelta(days=1),
        "pks": [1, 2, 3],
        "player": buyer,
        "request": RequestFactory(REMOTE_ADDR="173.194.38.137").get("/"),
        "rows": [],
        "sale": Sale.objects.create(buyer=buyer),
        "tomorrow": timezone.now() + timedelta(days=1),
        "urlpatterns": [],
    }


def chat(folder: Path) -> None:
    Chat.create("joe", members=["jeff"], id="guild:7", text="Hello")


def readme(folder: Path) -> None:
    AddressBook("market.player").add("Ann Smith", id=1)
    mailboxes(folder)


def mailboxes(folder: Path) -> None:
    meanwhile(lambda: Mailbox("jack451").push("bob", "Are you asleep?"))


def queues(folder: Path) -> None:
    meanwhile(run_tasks)


def places(folder: Path) -> None:
    import_networks(folder, {"173.194.38.0/24": city("US", "CA", "Mountain View")})


def logs(folder: Path) -> None:
    places(folder)
    today = timezone.now().date()
    count({today - timedelta(day): {"US/CA/Mountain View": 5} for day in range(14)}, job="nightly")
    (folder / "access.log.gz").write_bytes(gzip.compress(b"192.0.2.1 2011-10-10 00:00:00\n" * 100_000))


def meanwhile(call: Callable[[], Any]) -> None:
    """Do in a thread what another process does, five times a second."""

    def run() -> None:
        while True:
            call()
            sleep(0.2)

    Thread(target=run, daemon=True).start()


_PREPARED = {
    "README": readme,
    "chat": chat,
    "mailboxes": mailboxes,
    "queues": queues,
    "geo": places,
    "logs": logs,
    "examples/exceptions": places,
    "examples/geo": places,
    "examples/logs": logs,
}
