"""The anchors of the Locks and Semaphores pages: state, content types and permissions, and no tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("components", "0002_delete_tasks")]

    operations = [
        migrations.CreateModel(
            name="Lock",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "lock",
                "verbose_name_plural": "locks",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view", "change"),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Semaphore",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "semaphore",
                "verbose_name_plural": "semaphores",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view", "change"),
                "base_manager_name": "objects",
            },
        ),
    ]
