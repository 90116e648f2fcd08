"""
A page that shows where Fake Game is played today, as counted so far from its log, and a form that looks up an
address.

Days are in UTC, as the game server writes them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from components.exceptions import GeoTableNotFound, InvalidValue
from components.services.geo import UNKNOWN, Place, locate, place_name
from components.services.logs import DEFAULT_JOB
from components.services.logs.traffic import Report, Traffic

from .geography import example_address

#: How many days the chart shows, and how many places each list.
_DAYS = 14
_TOP = 10
_LONGEST = 60  # characters of an address to look up


class AddressForm(forms.Form):
    """An address to look up."""

    address = forms.CharField(max_length=_LONGEST, label="An address")
    place: Place | None = None

    def clean_address(self) -> str:
        address: str = self.cleaned_data["address"]
        try:
            self.place = locate(address)
        except (GeoTableNotFound, InvalidValue) as error:
            raise forms.ValidationError(str(error)) from error
        return address


@require_safe
def today(request: HttpRequest) -> HttpResponse:
    """Show today's counts by country and by city, beside the days before."""
    traffic, day = Traffic(), datetime.now(UTC).date()
    days = [day - timedelta(days=ago) for ago in reversed(range(_DAYS))]
    lines = {each.day: each.lines for each in traffic.days(days[0], day)}
    most = max(lines.values(), default=0)
    form = AddressForm(request.GET if "address" in request.GET else None, label_suffix="")
    context = {
        "total": lines.get(day, 0),
        "most": most,
        "days": [
            {"day": each, "lines": lines.get(each, 0), "percent": _percent(lines.get(each, 0), most)}
            for each in days
        ],
        "countries": _rows(traffic.report("country", first=day, last=day, top=_TOP)),
        "cities": _rows(traffic.report("city", first=day, last=day, top=_TOP)),
        "form": form,
        "example": example_address(),
        "closer": _control_room(request),
        "found": _name(form.place.id) if form.is_valid() and form.place else "",
    }
    return render(request, "players/today.html", context)


def _control_room(request: HttpRequest) -> str:
    """Return the address of the admin page with more details; "" for users who may not see it."""
    if not (request.user.is_staff and request.user.has_perm("components.view_logjob")):
        return ""
    return f"{reverse('admin:components_logjob_traffic')}?{urlencode({'job': DEFAULT_JOB})}"


def _rows(report: Report) -> list[dict[str, Any]]:
    """Return rows with bars, as wide as their counts in relation to the largest."""
    most = max((row.count for row in report.rows), default=0)
    return [
        {
            "id": row.id,
            "name": _name(row.id),
            "count": row.count,
            "share": 100 * row.share,
            "percent": _percent(row.count, most),
        }
        for row in report.rows
    ]


def _percent(part: int, most: int) -> str:
    return f"{100 * part / most:.1f}" if most else "0"


def _name(place: str) -> str:
    """Return the name of an id: "California, United States" for "US/CA" if the table of addresses has it."""
    return "Unknown" if place == UNKNOWN.id else place_name(place)
