import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Item",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("weapon", "Weapon"),
                            ("armour", "Armour"),
                            ("potion", "Potion"),
                            ("scroll", "Scroll"),
                            ("curio", "Curio"),
                        ],
                        default="curio",
                        max_length=10,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Player",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("funds", models.BigIntegerField(default=1000, verbose_name="gold")),
                (
                    "wants_sold_mail",
                    models.BooleanField(default=True, verbose_name="mail me when something of mine is sold"),
                ),
                (
                    "wants_expired_mail",
                    models.BooleanField(
                        default=True, verbose_name="mail me when a listing ends without a buyer"
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="player",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Listing",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "price",
                    models.PositiveIntegerField(
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000000),
                        ]
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("opens_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ends_at", models.DateTimeField(blank=True, null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("scheduled", "Scheduled"),
                            ("open", "Open"),
                            ("sold", "Sold"),
                            ("expired", "Expired"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("tasks_enqueued_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("mail_enqueued_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="listings", to="market.item"
                    ),
                ),
                (
                    "seller",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="listings",
                        to="market.player",
                    ),
                ),
            ],
            options={
                "ordering": ["-opens_at", "-pk"],
            },
        ),
        migrations.AddField(
            model_name="item",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="items", to="market.player"
            ),
        ),
        migrations.CreateModel(
            name="Sale",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("price", models.PositiveIntegerField()),
                ("sold_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("mail_enqueued_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "buyer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="purchases",
                        to="market.player",
                    ),
                ),
                (
                    "listing",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sale", to="market.listing"
                    ),
                ),
                (
                    "seller",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sales", to="market.player"
                    ),
                ),
            ],
            options={
                "ordering": ["-sold_at", "-pk"],
            },
        ),
        migrations.AddConstraint(
            model_name="player",
            constraint=models.CheckConstraint(
                condition=models.Q(("funds__gte", 0)), name="market_player_funds_not_negative"
            ),
        ),
        migrations.AddIndex(
            model_name="listing",
            index=models.Index(fields=["status", "opens_at"], name="market_listing_status_opens"),
        ),
        migrations.AddConstraint(
            model_name="listing",
            constraint=models.CheckConstraint(
                condition=models.Q(("price__gte", 1), ("price__lte", 1000000000)),
                name="market_listing_price_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="listing",
            constraint=models.CheckConstraint(
                condition=models.Q(("ends_at", None), ("ends_at__gt", models.F("opens_at")), _connector="OR"),
                name="market_listing_ends_after_opening",
            ),
        ),
        migrations.AddConstraint(
            model_name="listing",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["scheduled", "open"])),
                fields=("item",),
                name="market_listing_one_live_per_item",
                violation_error_message="This item is already listed.",
            ),
        ),
        migrations.AddIndex(
            model_name="sale",
            index=models.Index(
                condition=models.Q(("mail_enqueued_at", None)),
                fields=["sold_at"],
                name="market_sale_unmailed",
            ),
        ),
        migrations.AddConstraint(
            model_name="sale",
            constraint=models.CheckConstraint(
                condition=models.Q(("price__gte", 1)), name="market_sale_price_positive"
            ),
        ),
        migrations.AddConstraint(
            model_name="sale",
            constraint=models.CheckConstraint(
                condition=models.Q(("buyer", models.F("seller")), _negated=True),
                name="market_sale_not_to_oneself",
            ),
        ),
    ]
