"""Guilds in Django's admin. Changes that are saved here also change the members of the guild's chat."""

from __future__ import annotations

from django.contrib import admin

from components.services.autocomplete.admin.fields import BookFieldsMixin

from .models import Guild, Membership


class MembershipInline(BookFieldsMixin, admin.TabularInline):  # type: ignore[type-arg]
    model = Membership
    book_fields = {"player": "market.player"}
    extra = 0


@admin.register(Guild)
class GuildAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "motto"]
    search_fields = ["name", "memberships__player__user__username"]
    inlines = [MembershipInline]
