from django.db import migrations

import components.db.fences.fields


class Migration(migrations.Migration):
    dependencies = [
        ("market", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="item",
            name="fence",
            field=components.db.fences.fields.FenceField(default=0, editable=False),
        ),
    ]
