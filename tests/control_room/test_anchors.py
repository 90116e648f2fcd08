"""A model without a table must not trip over those who walk over all models."""

from __future__ import annotations

import io
import json

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command

from components.models import (
    AddressBook,
    CachedRow,
    Chat,
    Counter,
    Lock,
    LogJob,
    Mailbox,
    Overview,
    Queue,
    Semaphore,
)


def test_no_migration_is_missing(db):
    call_command("makemigrations", "components", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize(
    ("model", "verbs"),
    [
        ("addressbook", {"view", "rebuild", "remove"}),
        ("cachedrow", {"view", "refresh", "change", "remove"}),
        ("queue", {"view", "change", "delete", "view_arguments"}),
        ("counter", {"view"}),
        ("lock", {"view", "change"}),
        ("overview", {"view"}),
        ("logjob", {"view", "resend", "discard", "remove"}),
        ("semaphore", {"view", "change"}),
        ("chat", {"view", "change", "delete", "view_messages"}),
        ("mailbox", {"view", "change", "delete", "view_messages"}),
    ],
)
def test_permissions_exist_for_what_can_be_done_and_no_others(db, model, verbs):
    codenames = Permission.objects.filter(content_type__model=model).values_list("codename", flat=True)

    assert set(codenames) == {f"{verb}_{model}" for verb in verbs}


@pytest.mark.parametrize("options", [[], ["--all"]])
def test_dumpdata_finds_no_rows(db, options):
    out = io.StringIO()

    call_command("dumpdata", "components", *options, stdout=out)

    assert json.loads(out.getvalue()) == []


@pytest.mark.parametrize(
    "anchor", [AddressBook, CachedRow, Chat, Counter, Lock, LogJob, Mailbox, Overview, Queue, Semaphore]
)
def test_an_anchor_asks_no_database(anchor):
    assert list(anchor.objects.filter(name="default/mail")) == []
    assert str(anchor(name="default/mail")) == "default/mail"
