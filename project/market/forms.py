"""
The forms of players. Times are chosen as spans from now on, so that no time zone can be mistaken.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import F
from django.utils import timezone

from components.services.autocomplete.widgets import CompleteInput

from . import books
from .models import MAX_PRICE, Item, Listing, ListingQuerySet, Player

MINUTE, HOUR, DAY = 60, 3_600, 86_400


class BrowseForm(forms.Form):
    """The filter and order of open listings. Fields that are empty or wrong do not filter."""

    ORDERS = {
        "new": F("opens_at").desc(),
        "cheap": F("price").asc(),
        "dear": F("price").desc(),
        "ending": F("ends_at").asc(nulls_last=True),
    }

    #: Cleans to a Typed. Names are offered only to users who are logged in, since the API answers nobody else.
    q = forms.Field(
        label="Search", required=False, widget=CompleteInput("market.listing", {"type": "search"}, limit=8)
    )
    kind = forms.ChoiceField(label="Kind", required=False, choices=[("", "Everything"), *Item.Kind.choices])
    order = forms.ChoiceField(
        label="Sort by",
        required=False,
        choices=[
            ("new", "Newest"),
            ("cheap", "Cheapest"),
            ("dear", "Most expensive"),
            ("ending", "Ending soon"),
        ],
    )
    affordable = forms.BooleanField(label="Only what I can afford", required=False)

    #: Whether more names match than are shown.
    has_more = False

    def narrow(self, listings: ListingQuerySet, player: Player | None) -> ListingQuerySet:
        self.is_valid()
        wanted = self.cleaned_data
        if wanted.get("q"):
            meant, is_all = books.search(wanted["q"])
            listings, self.has_more = listings.filter(meant), not is_all
        if wanted.get("kind"):
            listings = listings.filter(item__kind=wanted["kind"])
        if wanted.get("affordable") and player is not None:
            listings = listings.filter(price__lte=player.funds)
        return listings.order_by(self.ORDERS[wanted.get("order") or "new"], "-pk")


class ListingForm(forms.Form):
    """Which item, at which price, from when, for how long."""

    item = forms.ModelChoiceField(queryset=Item.objects.none(), empty_label="Choose an item")
    price = forms.IntegerField(label="Price in gold", min_value=1, max_value=MAX_PRICE)
    opens = forms.TypedChoiceField(
        label="Put it up for sale",
        coerce=int,
        initial=0,
        choices=[
            (0, "now"),
            (MINUTE, "in a minute"),
            (HOUR, "in an hour"),
            (8 * HOUR, "in 8 hours"),
            (DAY, "in a day"),
        ],
    )
    ends = forms.TypedChoiceField(
        label="For sale",
        coerce=int,
        initial=DAY,
        choices=[
            (0, "until it is sold"),
            (2 * MINUTE, "for 2 minutes"),
            (HOUR, "for an hour"),
            (DAY, "for a day"),
            (7 * DAY, "for a week"),
        ],
    )

    def __init__(self, player: Player, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        listed = Listing.objects.live().exclude(ends_at__lte=timezone.now()).values("item")
        self.fields["item"].queryset = player.items.exclude(pk__in=listed)  # type: ignore[attr-defined]

    def times(self) -> tuple[datetime | None, datetime | None]:
        """Return when the listing opens (None: at once) and ends (None: when it is sold)."""
        opens, ends = self.cleaned_data["opens"], self.cleaned_data["ends"]
        start = timezone.now() + timedelta(seconds=opens)
        return start if opens else None, start + timedelta(seconds=ends) if ends else None


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]
    """Which mail the player wants."""

    class Meta:
        model = Player
        fields = ["wants_sold_mail", "wants_expired_mail"]
