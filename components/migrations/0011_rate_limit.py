"""The anchor of the Rate limits page."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("components", "0001_squashed_0010_overview")]

    operations = [
        migrations.CreateModel(
            name="RateLimit",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "rate limit",
                "verbose_name_plural": "rate limits",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
                "base_manager_name": "objects",
            },
        ),
    ]
