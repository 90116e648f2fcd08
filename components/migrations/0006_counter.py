"""The anchor of the Counters page: state, a content type and a permission, and no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("components", "0005_address_books")]

    operations = [
        migrations.CreateModel(
            name="Counter",
            fields=[("name", models.CharField(max_length=255, primary_key=True, serialize=False))],
            options={
                "verbose_name": "counter",
                "verbose_name_plural": "counters",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
                "base_manager_name": "objects",
            },
        ),
    ]
