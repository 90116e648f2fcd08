"""The anchor of the Queues page: state, a content type and permissions, and no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Queue",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view", "change"),
                "base_manager_name": "objects",
            },
        ),
    ]
