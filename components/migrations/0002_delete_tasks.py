"""Add a separate permission to delete tasks, since a deleted task cannot be inspected any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("components", "0001_initial")]

    operations = [
        migrations.AlterModelOptions(
            name="queue",
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "managed": False,
                "default_permissions": ("view", "change", "delete"),
                "base_manager_name": "objects",
            },
        ),
    ]
