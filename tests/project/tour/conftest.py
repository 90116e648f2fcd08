"""The demo with its tour, as `manage.py demo` runs it."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from django.conf import settings as site
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import clear_url_caches

from project.market.models import Item, Listing
from tests.project.market.conftest import player


@pytest.fixture
def toured(settings: object, tmp_path: Path) -> None:
    settings.VAR = tmp_path  # type: ignore[attr-defined]
    settings.ROOT_URLCONF = "tests.project.tour.urls"  # type: ignore[attr-defined]
    templates = copy.deepcopy(settings.TEMPLATES)  # type: ignore[attr-defined]
    templates[0]["OPTIONS"]["context_processors"].append("project.tour.context_processors.tour")
    settings.TEMPLATES = templates  # type: ignore[attr-defined]
    clear_url_caches()


@pytest.fixture
def listing(toured: None, db: None) -> Listing:
    """Joe's dagger, which jack can pay."""
    joe = player("joe")
    player("jack")
    User.objects.create_superuser("admin", password="admin")
    item = Item.objects.create(name="Moonlit Dagger", kind=Item.Kind.WEAPON, owner=joe)
    return Listing.objects.create(item=item, seller=joe, price=100)


@pytest.fixture
def visitor(listing: Listing) -> Client:
    return Client()


def to_files(folder: Path) -> override_settings:
    backend = "project.tour.mail.BreakableBackend"
    if hasattr(site, "MAILERS"):
        return override_settings(
            MAILERS={"default": {"BACKEND": backend, "OPTIONS": {"file_path": str(folder)}}}
        )
    return override_settings(EMAIL_BACKEND=backend, EMAIL_FILE_PATH=str(folder))
