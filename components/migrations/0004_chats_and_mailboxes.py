"""The anchors of the Chats and Mailboxes pages: state, content types and permissions, and no tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("components", "0003_locks_and_semaphores")]

    operations = [
        migrations.CreateModel(
            name="Chat",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "chat",
                "verbose_name_plural": "chats",
                "permissions": (("view_messages_chat", "Can read the messages of chats"),),
                "abstract": False,
                "managed": False,
                "default_permissions": ("view", "change", "delete"),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Mailbox",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "mailbox",
                "verbose_name_plural": "mailboxes",
                "permissions": (("view_messages_mailbox", "Can read the messages of mailboxes"),),
                "abstract": False,
                "managed": False,
                "default_permissions": ("view", "change", "delete"),
                "base_manager_name": "objects",
            },
        ),
    ]
