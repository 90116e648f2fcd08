"""
The market's pages. Each calls trading.py at most once, and tells the player the result.

A refusal appears as a message on the page that the player came from. While others trade the same item, the answer is
a page with status 409 and a button to try again. While Redis is away, trading answers 503 with a page that says that
nothing has happened; browsing and logging in still work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import LoginView, redirect_to_login
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from components.exceptions import RedisUnavailable
from components.middleware import mark_unavailable

from . import flash, trading
from .forms import BrowseForm, ListingForm, PreferencesForm
from .ledger import Busy, Refusal
from .models import FlashSale, Item, Listing, Player

PAGE_SIZE = 24


def player_of(user: User | AnonymousUser) -> Player | None:
    """Return the user's player, created with a starting purse at the first visit; None for visitors."""
    if not user.is_authenticated:
        return None
    return Player.objects.get_or_create(user=user)[0]


def changes(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """
    Decorate a view that changes something: it accepts POST only, from logged-in users, and the log-in page never
    leads to it.
    """

    @require_POST
    @wraps(view)
    def guarded(request: HttpRequest, **which: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect_to_login(reverse("market:browse"))
        return view(request, **which)

    return guarded


@require_safe
def browse(request: HttpRequest) -> HttpResponse:
    """List everything that can be bought now."""
    player = player_of(request.user)
    form = BrowseForm({"order": "new", **request.GET.dict()}, label_suffix="")
    listings = form.narrow(Listing.objects.open_at(timezone.now()), player)
    listings = listings.select_related("item", "seller__user")
    page = Paginator(listings, PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "market/browse.html", {"player": player, "form": form, "page": page})


@login_required
def offer(request: HttpRequest) -> HttpResponse:
    """Put one of the player's items on offer."""
    player = _me(request)
    form = ListingForm(
        player, request.POST or None, initial={"item": request.GET.get("item")}, label_suffix=""
    )
    if request.method == "POST" and form.is_valid():
        item: Item = form.cleaned_data["item"]
        opens_at, ends_at = form.times()
        try:
            trading.list_item(player, item, form.cleaned_data["price"], opens_at=opens_at, ends_at=ends_at)
        except RedisUnavailable as error:
            return _unavailable(request, player, f"{item.name} was not listed.", error)
        except Busy as busy:
            return _busy(request, player, f"{busy} It was not listed.")
        except Refusal as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, f"{item.name} {'will be listed' if opens_at else 'is listed'}.")
            return redirect("market:mine")
    return render(request, "market/offer.html", {"player": player, "form": form})


@changes
def buy(request: HttpRequest, listing_id: int) -> HttpResponse:
    """Buy at the price on the button."""
    player, price = _me(request), _price(request)
    if price is None:
        messages.error(request, "The price is missing. Nothing was bought.")
        return _back(request, "market:browse")
    try:
        sale = trading.buy(player, listing_id, price)
    except RedisUnavailable as error:
        return _unavailable(request, player, "Nothing was bought, and your gold is untouched.", error)
    except Busy as busy:
        return _busy(request, player, f"{busy} Nothing was bought, and your gold is untouched.")
    except Refusal as refusal:
        messages.error(request, f"{refusal} Nothing was bought.")
    else:
        messages.success(request, f"{sale.listing.item.name} is yours, for {sale.price:,} gold.")
    return _back(request, "market:browse")


@require_safe
def flash_sale(request: HttpRequest) -> HttpResponse:
    """
    Show what is on sale today, and how many remain. Both are read from the cache, and the page's script reads them
    again.
    """
    player = player_of(request.user)
    sales = flash.on_sale(timezone.localdate())
    mine = player.flash_purchases.filter(sale__slug__in=[sale.slug for sale in sales]) if player else None
    context = {
        "player": player,
        "sales": sales,
        "bought": set(mine.values_list("sale__slug", flat=True)) if mine is not None else set(),
        "every": FlashSale.cached.delay,
    }
    return render(request, "market/flash.html", context)


@changes
def buy_flash(request: HttpRequest, slug: str) -> HttpResponse:
    """Buy one piece, at the price on the button."""
    price = _price(request)
    if price is None:
        messages.error(request, "The price is missing. Nothing was bought.")
        return redirect("market:flash")
    try:
        purchase = trading.buy_flash(_me(request), slug, price)
    except Refusal as refusal:
        messages.error(request, f"{refusal} Nothing was bought.")
    else:
        messages.success(request, f"{purchase.sale.name} is yours, for {purchase.price:,} gold.")
    return redirect("market:flash")


@changes
def withdraw(request: HttpRequest, listing_id: int) -> HttpResponse:
    """Take a listing back."""
    player = _me(request)
    try:
        listing = trading.withdraw(player, listing_id)
    except RedisUnavailable as error:
        return _unavailable(request, player, "Nothing was withdrawn.", error)
    except Busy as busy:
        return _busy(request, player, f"{busy} Nothing was withdrawn.")
    except Refusal as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"{listing.item.name} is no longer for sale.")
    return redirect("market:mine")


@login_required
@require_safe
def mine(request: HttpRequest) -> HttpResponse:
    """List what the player has, offers, and has sold."""
    player = _me(request)
    now = timezone.now()
    listings = player.listings.live().exclude(ends_at__lte=now).select_related("item")
    context = {
        "player": player,
        "now": now,
        "listings": listings,
        "items": player.items.exclude(pk__in=listings.values("item")),
        "sales": player.sales.select_related("listing__item", "buyer__user")[:PAGE_SIZE],
        "purchases": player.purchases.select_related("listing__item", "seller__user")[:PAGE_SIZE],
    }
    return render(request, "market/mine.html", context)


@login_required
def preferences(request: HttpRequest) -> HttpResponse:
    """Let the player choose which mail they want."""
    player = _me(request)
    form = PreferencesForm(request.POST or None, instance=player, label_suffix="")
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, "Your mail settings are saved.")
        return redirect("market:preferences")
    return render(request, "market/preferences.html", {"player": player, "form": form})


class Login(LoginView):
    """The log-in page; if the demo data may be loaded, it names the demo's players."""

    redirect_authenticated_user = True

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "label_suffix": ""}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, demo=settings.DEBUG)


def _me(request: HttpRequest) -> Player:
    player = player_of(request.user)
    assert player is not None, "the view needs login_required"
    return player


def _price(request: HttpRequest) -> int | None:
    """Return the price on the button; None if the form has none."""
    try:
        return int(request.POST.get("price", ""))
    except ValueError:
        return None


def _back(request: HttpRequest, default: str) -> HttpResponse:
    """Redirect to the page of the form, with its search and page number."""
    page = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure())
    return redirect(page if ours else default)


def _busy(request: HttpRequest, player: Player, outcome: str) -> HttpResponse:
    """Show a page whose button sends the same form again."""
    again = [(name, value) for name, value in request.POST.items() if name != "csrfmiddlewaretoken"]
    context = {"player": player, "outcome": outcome, "again": again}
    return render(request, "market/busy.html", context, status=409)


def _unavailable(request: HttpRequest, player: Player, outcome: str, error: RedisUnavailable) -> HttpResponse:
    context = {"player": player, "outcome": outcome}
    response = render(request, "market/unavailable.html", context, status=503)
    mark_unavailable(request, response, error)
    return response
