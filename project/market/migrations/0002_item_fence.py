from django.db import migrations

import components.services.locks.models


class Migration(migrations.Migration):
    dependencies = [
        ("market", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="item",
            name="fence",
            field=components.services.locks.models.FenceField(default=0, editable=False),
        ),
    ]
