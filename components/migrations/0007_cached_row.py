"""The anchor of the Cached rows page: state, a content type and permissions, and no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("components", "0006_counter")]

    operations = [
        migrations.CreateModel(
            name="CachedRow",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "cached row",
                "verbose_name_plural": "cached rows",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view", "refresh", "change", "remove"),
                "base_manager_name": "objects",
            },
        ),
    ]
