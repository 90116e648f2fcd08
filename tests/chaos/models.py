"""A cached row whose number grows with each write."""

from django.db import models

from components.services.rows.models import CachedRow, Caching

#: Seconds for which a row is good that is on no schedule.
DELAY = 1.0


class Stock(CachedRow):
    caching = Caching(delay=DELAY, name="stocks")

    number = models.BigIntegerField()

    class Meta:
        app_label = "chaos"
