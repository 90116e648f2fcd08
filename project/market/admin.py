"""
The market in Django's admin. Sales are history: they are shown, never edited. Owners, sellers and items are chosen by
their names, which the market's address books offer.
"""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from components.services.autocomplete.admin.fields import BookFieldsMixin

from .models import FlashPurchase, FlashSale, Item, Listing, Player, Sale


@admin.register(Player)
class PlayerAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["user", "funds", "wants_sold_mail", "wants_expired_mail"]
    list_select_related = ["user"]
    search_fields = ["user__username", "user__email"]
    raw_id_fields = ["user"]


@admin.register(Item)
class ItemAdmin(BookFieldsMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "kind", "owner"]
    readonly_fields = ["fence"]
    list_filter = ["kind"]
    list_select_related = ["owner__user"]
    search_fields = ["name", "owner__user__username"]
    book_fields = {"owner": "market.player"}


@admin.register(Listing)
class ListingAdmin(BookFieldsMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["item", "seller", "price", "status", "opens_at", "ends_at"]
    list_filter = ["status"]
    list_select_related = ["item", "seller__user"]
    search_fields = ["item__name", "seller__user__username"]
    book_fields = {"item": "market.item", "seller": "market.player"}
    readonly_fields = ["tasks_enqueued_at", "mail_enqueued_at"]


@admin.register(Sale)
class SaleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["listing", "buyer", "seller", "price", "sold_at", "mail_enqueued_at"]
    list_select_related = ["listing__item", "buyer__user", "seller__user"]
    search_fields = ["listing__item__name", "buyer__user__username", "seller__user__username"]
    date_hierarchy = "sold_at"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Sale | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Sale | None = None) -> bool:
        return False


@admin.register(FlashSale)
class FlashSaleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "slug", "price", "remaining", "stock", "opens_at", "ends_at"]
    search_fields = ["name", "slug"]
    date_hierarchy = "opens_at"


@admin.register(FlashPurchase)
class FlashPurchaseAdmin(SaleAdmin):
    list_display = ["sale", "buyer", "price", "bought_at"]
    list_select_related = ["sale", "buyer__user"]
    search_fields = ["sale__name", "buyer__user__username"]
    date_hierarchy = "bought_at"
