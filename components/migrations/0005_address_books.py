"""The anchor of the Address books page: state, a content type and permissions, and no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("components", "0004_chats_and_mailboxes")]

    operations = [
        migrations.CreateModel(
            name="AddressBook",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "address book",
                "verbose_name_plural": "address books",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view", "rebuild", "remove"),
                "base_manager_name": "objects",
            },
        ),
    ]
