"""A model without a table must not trip over those who walk over all models."""

from __future__ import annotations

import io
import json

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command

from components.models import Queue


def test_no_migration_is_missing(db):
    call_command("makemigrations", "components", check=True, dry_run=True, verbosity=0)


def test_permissions_exist_to_view_to_change_and_to_delete_and_no_others(db):
    codenames = Permission.objects.filter(content_type__model="queue").values_list("codename", flat=True)

    assert set(codenames) == {"view_queue", "change_queue", "delete_queue"}


@pytest.mark.parametrize("options", [[], ["--all"]])
def test_dumpdata_finds_no_rows(db, options):
    out = io.StringIO()

    call_command("dumpdata", "components", *options, stdout=out)

    assert json.loads(out.getvalue()) == []


def test_an_anchor_asks_no_database():
    assert list(Queue.objects.filter(name="default/mail")) == []
    assert str(Queue(name="default/mail")) == "default/mail"
