"""The anchor of the Overview page: state, a content type and a permission, and no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("components", "0009_queue_arguments")]

    operations = [
        migrations.CreateModel(
            name="Overview",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "overview",
                "verbose_name_plural": "overview",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
                "base_manager_name": "objects",
            },
        ),
    ]
