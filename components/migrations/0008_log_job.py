"""The anchor of the Logs page: state, a content type and permissions, and no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("components", "0007_cached_row")]

    operations = [
        migrations.CreateModel(
            name="LogJob",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "log job",
                "verbose_name_plural": "logs",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view", "resend", "discard", "remove"),
                "base_manager_name": "objects",
            },
        ),
    ]
