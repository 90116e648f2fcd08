"""A cached row whose number grows with each write, and what was done to it, in the order of the commits."""

from __future__ import annotations

from django.db import models

from components.services.rows.models import CachedRow, Caching

#: Seconds for which a row is good that is on no schedule.
DELAY = 1.0


class Stock(CachedRow):
    caching = Caching(delay=DELAY, name="stocks")

    number = models.BigIntegerField()

    class Meta:
        app_label = "stocks"


class Change(models.Model):
    """A committed write. *number* counts those of one row, whose deletions are writes as well."""

    attempt = models.CharField(max_length=32, primary_key=True)
    row = models.BigIntegerField()
    number = models.BigIntegerField()
    is_deletion = models.BooleanField()

    class Meta:
        app_label = "stocks"


class Count(models.Model):
    """How often a row was written; who holds it is the only one to write to that row."""

    row = models.BigIntegerField(primary_key=True)
    number = models.BigIntegerField(default=0)

    class Meta:
        app_label = "stocks"
