"""A table of eight columns as a shop has it, and a smaller one: the second model of a batch."""

from __future__ import annotations

from django.db import models

from components.services.rows.models import CachedRow, Caching


class Item(CachedRow, models.Model):
    caching = Caching(delay=5)

    name = models.CharField(max_length=100)
    description = models.TextField()
    stock = models.IntegerField()
    price = models.DecimalField(max_digits=10, decimal_places=2)
    is_offered = models.BooleanField()
    seller = models.UUIDField()
    changed_at = models.DateTimeField()


class Offer(CachedRow, models.Model):
    caching = Caching(delay=5)

    title = models.CharField(max_length=100)
    percent = models.IntegerField()
