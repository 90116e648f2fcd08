"""Models that the examples use without declaring them."""

from django.conf import settings
from django.db import models

from components.services.rows.models import CachedRow


class Player(models.Model):
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    name = models.CharField(max_length=80)


class Membership(models.Model):
    player = models.ForeignKey(Player, on_delete=models.CASCADE)
    guild = models.IntegerField()


class Profile(models.Model):
    takes_invitations = models.BooleanField(default=True)


class Sale(models.Model):
    buyer = models.ForeignKey(Player, on_delete=models.CASCADE)


class Order(CachedRow):
    buyer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    state = models.CharField(max_length=20, default="new")
