"""
Tables of names and of rows. One table of rows has eight columns, as in a shop; the other is smaller, for batches of
two models.
"""

from __future__ import annotations

from django.db import models

from components.services.autocomplete.models import ModelBook
from components.services.rows.models import CachedRow, Caching


class Person(models.Model):
    name = models.CharField(max_length=200)
    #: The search key of the name, which LIKE needs. Its indexes are created when the table is full.
    key = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name


class Letter(models.Model):
    to = models.ForeignKey(Person, on_delete=models.CASCADE)


persons = ModelBook(Person, "name")


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
