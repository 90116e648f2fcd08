"""Cached rows and fenced querysets keep the type of their model."""

from __future__ import annotations

from typing import Any, assert_type

from django.db import models

from components.services.locks.models import FencedModel, FencedQuerySet
from components.services.rows.models import CachedRow, CachedRows, Caching


class Item(CachedRow, models.Model):
    name: models.CharField[str, str] = models.CharField(max_length=100)
    stock: models.IntegerField[int, int] = models.IntegerField()

    caching = Caching(delay=5, fields=["name", "stock"])


class Player(models.Model):
    name: models.CharField[str, str] = models.CharField(max_length=100)


class Sword(FencedModel):
    owner: models.CharField[str, str] = models.CharField(max_length=100)


class Shield(FencedModel):
    owner: models.CharField[str, str] = models.CharField(max_length=100)


players = CachedRows(Player, fields=["name"])


def read() -> None:
    assert_type(Item.cached, CachedRows[Item])
    assert_type(Item.cached.get(42), Item | None)
    assert_type(Item.cached.get_many([42]), dict[Any, Item])
    assert_type(players.get(42), Player | None)
    Item.cached.schedule(42, delay=0.5)
    if row := Item.cached.get(42):
        assert_type(row.stock, int)
        assert_type(row.name, str)
        assert_type(row.cached.age, float)

        row.price  # refused
        row.stock.upper()  # refused

    Item.cached.get(42).stock  # refused
    Item.cached.get(42, max_aje=1)  # refused
    Item.cached.get(42, max_age="1 s")  # refused
    Item.cached.schedule(42, delay="1 s")  # refused
    Caching(field=["name"])  # refused


async def read_soon() -> None:
    assert_type(await Item.cached.aget(42), Item | None)
    assert_type(await Item.cached.aget_many([42]), dict[Any, Item])


def write(fence: int) -> None:
    assert_type(Sword.objects.fenced(fence).get(pk=42), Sword)
    assert_type(Sword.objects.filter(pk=42).fenced(fence).first(), Sword | None)
    assert_type(Sword.objects.fenced(fence).create(owner="joe"), Sword)
    assert_type(Sword.objects.fenced(fence).bulk_create([Sword(owner="joe")]), list[Sword])
    assert_type(Sword.objects.fenced(fence).update(owner="joe"), int)
    Sword().save(fence=fence)

    Sword.objects.fenced("1")  # refused
    Sword.objects.fenced()  # refused
    Sword.objects.fenced(fence).get(pk=42).price  # refused
    Sword.objects.fenced(fence).bulk_create([Shield(owner="joe")])  # refused
    Sword().save(fence="1")  # refused


def named(rows: FencedQuerySet[Sword], fence: int) -> FencedQuerySet[Sword]:
    return rows.fenced(fence)
