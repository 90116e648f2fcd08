"""What the tests of components.db write to. The app has no migrations: its tables are made with the test database."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models.functions import Random

from components.services.locks.models import FencedModel, FencedQuerySet
from components.services.rows.models import CachedRow, Caching


class Shelf(models.Model):
    name = models.CharField(max_length=20, unique=True)


class Box(FencedModel):
    """A fenced row."""

    name = models.CharField(max_length=20, unique=True)
    content = models.IntegerField(default=0)
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, null=True, related_name="boxes")
    changed_at = models.DateTimeField(auto_now=True)


class Parcel(Box):
    """The same rows under another name."""

    class Meta:
        proxy = True


class CrateQuerySet(FencedQuerySet["Crate"]):
    def full(self) -> CrateQuerySet:
        return self.filter(content__gt=0)


class Crate(FencedModel):
    """A fenced model with a queryset of its own."""

    content = models.IntegerField(default=0)

    objects = CrateQuerySet.as_manager()


class Colour(models.CharField):
    """A field whose values are not what its column holds: text that is in capitals in the database."""

    def from_db_value(self, value: str | None, *args: object) -> str | None:
        return None if value is None else value.lower()

    def get_prep_value(self, value: Any) -> Any:
        return value and value.upper()


class Lossy(models.CharField):
    """A field whose own serialization loses what it holds."""

    def from_db_value(self, value: str | None, *args: object) -> object:
        return None if value is None else (value,)

    def get_prep_value(self, value: Any) -> Any:
        return value[0] if isinstance(value, tuple) else value


class Ware(CachedRow):
    """A cached row with a field of each kind."""

    caching = Caching(delay=30)

    name = models.CharField(max_length=20, unique=True)
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, null=True)
    password = models.CharField(max_length=20, default="secret")
    stock = models.BigIntegerField(default=0)
    price = models.DecimalField(max_digits=20, decimal_places=4, default=Decimal("0.1000"))
    weight = models.FloatField(null=True)
    is_sold = models.BooleanField(default=False)
    made_at = models.DateTimeField(null=True)
    day = models.DateField(null=True)
    opens_at = models.TimeField(null=True)
    lasts = models.DurationField(null=True)
    serial = models.UUIDField(default=uuid.uuid4)
    picture = models.BinaryField(null=True)
    facts = models.JSONField(null=True)
    address = models.GenericIPAddressField(null=True)
    manual = models.FileField(null=True)
    colour = Colour(max_length=20, null=True)

    class Meta:
        required_db_features = {"supports_json_field"}  # else each check of the models asks the database


class DearWare(Ware):
    """The same rows under another name."""

    class Meta:
        proxy = True


class Token(CachedRow):
    """Known by a word, and with a field that cannot be cached."""

    caching = Caching(delay=5, fields=["word", "value"], key="word", name="tokens")

    word = models.SlugField(unique=True)
    value = Lossy(max_length=20, null=True)


class Stamp(CachedRow):
    """Its primary key is made by the database."""

    caching = Caching(delay=5, fields=["word"], key="word", name="stamps")

    id = models.FloatField(primary_key=True, db_default=Random())
    word = models.SlugField(unique=True)


class Bed(models.Model):
    name = models.CharField(max_length=20, default="")


class RaisedBed(Bed): ...


class Flower(CachedRow):
    """What becomes of it when one of those is deleted differs."""

    caching = Caching(delay=5)

    bed = models.ForeignKey(Bed, models.SET_NULL, null=True, related_name="+")
    plot = models.ForeignKey(Bed, models.SET_DEFAULT, null=True, default=None, related_name="+")
    spot = models.ForeignKey(Bed, models.SET(None), null=True, related_name="+")
    corner = models.ForeignKey(Bed, models.DO_NOTHING, null=True, related_name="+")
    vase = models.ForeignKey("Vase", models.SET_NULL, null=True, related_name="+")
    pot = models.ForeignKey("Vase", models.CASCADE, null=True, related_name="+")
    graft = models.ForeignKey("self", models.SET_NULL, null=True, related_name="+")


class Vase(models.Model): ...
