"""What the tests of components.db write to. The app has no migrations: its tables are made with the test database."""

from __future__ import annotations

from django.db import models

from components.db.fences import FencedModel, FencedQuerySet


class Shelf(models.Model):
    name = models.CharField(max_length=20, unique=True)

    class Meta:
        app_label = "db"


class Box(FencedModel):
    """A fenced row."""

    name = models.CharField(max_length=20, unique=True)
    content = models.IntegerField(default=0)
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, null=True, related_name="boxes")
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        app_label = "db"


class Parcel(Box):
    """The same rows under another name."""

    class Meta:
        app_label = "db"
        proxy = True


class CrateQuerySet(FencedQuerySet["Crate"]):
    def full(self) -> CrateQuerySet:
        return self.filter(content__gt=0)


class Crate(FencedModel):
    """A fenced model with a queryset of its own."""

    content = models.IntegerField(default=0)

    objects = CrateQuerySet.as_manager()

    class Meta:
        app_label = "db"
