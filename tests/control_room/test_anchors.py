"""A model without a table must not trip over those who walk over all models."""

import io
import json
from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test.utils import CaptureQueriesContext

SQUASHED = "0001_squashed_0010_overview"
squashed = import_module(f"components.migrations.{SQUASHED}")


def test_a_database_with_the_old_migrations_has_nothing_to_apply(db):
    recorded = MigrationRecorder.Migration.objects.filter(app="components")
    recorded.delete()
    for app, name in [*squashed.Migration.replaces, ("components", "0011_rate_limit")]:
        MigrationRecorder(connection).record_applied(app, name)

    call_command("migrate", check_unapplied=True, verbosity=0)
    call_command("migrate", "components", verbosity=0)

    assert recorded.filter(name=SQUASHED).exists()


def test_a_migration_of_a_project_may_depend_on_an_old_one(db, settings, tmp_path, monkeypatch):
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "__init__.py").touch()
    (tmp_path / "later" / "0001_grant.py").write_text(
        "from django.db import migrations\n"
        "class Migration(migrations.Migration):\n"
        "    dependencies = [('components', '0004_chats_and_mailboxes')]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings.MIGRATION_MODULES = {"guilds": "later"}

    plan = MigrationLoader(connection).graph.forwards_plan(("guilds", "0001_grant"))

    assert plan == [("components", SQUASHED), ("guilds", "0001_grant")]


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
        ("ratelimit", {"view"}),
        ("semaphore", {"view", "change"}),
        ("chat", {"view", "change", "delete", "view_messages"}),
        ("mailbox", {"view", "change", "delete", "view_messages"}),
    ],
)
def test_permissions_exist_for_what_can_be_done_and_no_others(db, model, verbs):
    codenames = Permission.objects.filter(content_type__model=model).values_list("codename", flat=True)

    assert set(codenames) == {f"{verb}_{model}" for verb in verbs}


def test_an_anchor_has_no_rows_and_asks_no_database(db):
    for options in ([], ["--all"]):
        out = io.StringIO()
        call_command("dumpdata", "components", *options, stdout=out)
        assert json.loads(out.getvalue()) == []
    for anchor in apps.get_app_config("components").get_models():
        with CaptureQueriesContext(connection) as queries:
            assert list(anchor.objects.filter(name="default/mail")) == []
        assert len(queries) == 0
        assert str(anchor(name="default/mail")) == "default/mail"
