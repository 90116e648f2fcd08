"""
Guilds and their members; a player is in at most one guild.

Players without a guild can neither send nor receive mail. The members of a guild share a chat, which follows these
rows (chats.py).
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from project.market.models import Player


class Guild(models.Model):
    """Players who play together."""

    name = models.CharField(max_length=60, unique=True)
    motto = models.CharField(max_length=120, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def chat_id(self) -> str:
        """The id of the chat that its members share."""
        return f"guild:{self.pk}"


class Membership(models.Model):
    """A player's membership in a guild."""

    guild = models.ForeignKey(Guild, on_delete=models.CASCADE, related_name="memberships")
    player = models.OneToOneField(Player, on_delete=models.CASCADE, related_name="membership")
    joined_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["joined_at", "pk"]

    def __str__(self) -> str:
        return f"{self.player} in {self.guild}"
