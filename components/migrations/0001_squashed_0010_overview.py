"""
The anchors of the pages of the control room: state, content types and permissions, and no tables.

It stands for the ten migrations of earlier checkouts. A database with all ten is up to date. On one with only some of
them, `migrate` has nothing to do and creates no further permissions: delete the rows of this app from
django_migrations, and run it again. Nothing else is lost, since no migration here changes a table.
"""

from collections.abc import Sequence

from django.db import migrations, models


def _anchor(
    name: str, verbs: Sequence[str], singular: str, plural: str, permissions: Sequence[tuple[str, str]] = ()
) -> migrations.CreateModel:
    options = {
        "verbose_name": singular,
        "verbose_name_plural": plural,
        "abstract": False,
        "managed": False,
        "default_permissions": tuple(verbs),
        "base_manager_name": "objects",
    }
    if permissions:
        options["permissions"] = tuple(permissions)
    key = models.CharField(max_length=255, primary_key=True, serialize=False)
    return migrations.CreateModel(name=name, fields=[("name", key)], options=options)


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    replaces = [
        ("components", "0001_initial"),
        ("components", "0002_delete_tasks"),
        ("components", "0003_locks_and_semaphores"),
        ("components", "0004_chats_and_mailboxes"),
        ("components", "0005_address_books"),
        ("components", "0006_counter"),
        ("components", "0007_cached_row"),
        ("components", "0008_log_job"),
        ("components", "0009_queue_arguments"),
        ("components", "0010_overview"),
    ]

    operations = [
        _anchor("AddressBook", ["view", "rebuild", "remove"], "address book", "address books"),
        _anchor("CachedRow", ["view", "refresh", "change", "remove"], "cached row", "cached rows"),
        _anchor(
            "Chat",
            ["view", "change", "delete"],
            "chat",
            "chats",
            [("view_messages_chat", "Can read the messages of chats")],
        ),
        _anchor("Counter", ["view"], "counter", "counters"),
        _anchor("Lock", ["view", "change"], "lock", "locks"),
        _anchor("LogJob", ["view", "resend", "discard", "remove"], "log job", "logs"),
        _anchor(
            "Mailbox",
            ["view", "change", "delete"],
            "mailbox",
            "mailboxes",
            [("view_messages_mailbox", "Can read the messages of mailboxes")],
        ),
        _anchor("Overview", ["view"], "overview", "overview"),
        _anchor(
            "Queue",
            ["view", "change", "delete"],
            "queue",
            "queues",
            [("view_arguments_queue", "Can see the arguments, results and tracebacks of tasks")],
        ),
        _anchor("Semaphore", ["view", "change"], "semaphore", "semaphores"),
    ]
