"""A table of names with the column that LIKE needs, and something that points to a row of it."""

from __future__ import annotations

from django.db import models

from components.services.autocomplete.models import ModelBook


class Person(models.Model):
    name = models.CharField(max_length=200)
    #: The search key of the name, with an index that is made once the table is full.
    key = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name


class Letter(models.Model):
    to = models.ForeignKey(Person, on_delete=models.CASCADE)


persons = ModelBook(Person, "name")
