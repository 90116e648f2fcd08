"""
A page of where Fake Game is played today, by what was counted of its log until now; and a form that finds an address.

Days are those of UTC, as the game server writes them.
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

from components.exceptions import GeoTableNotFound, InvalidAddress
from components.services.geo import UNKNOWN, Place, locate, place_name
from components.services.logs import DEFAULT_JOB
from components.services.logs.traffic import Report, Traffic

from .geography import example_address

#: Days in the picture, and places in each list.
_DAYS = 14
_TOP = 10
_LONGEST = 60  # characters of an address that is asked for


class AddressForm(forms.Form):
    """An address, to know where it lives."""

    address = forms.CharField(max_length=_LONGEST, label="An address")
    place: Place | None = None

    def clean_address(self) -> str:
        address: str = self.cleaned_data["address"]
        try:
            self.place = locate(address)
        except (GeoTableNotFound, InvalidAddress) as error:
            raise forms.ValidationError(str(error)) from error
        return address


@require_safe
def today(request: HttpRequest) -> HttpResponse:
    """What was counted today, by country and by city, beside the days before."""
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
    """Where more is told; nothing for those who may not look there."""
    if not (request.user.is_staff and request.user.has_perm("components.view_logjob")):
        return ""
    return f"{reverse('admin:components_logjob_traffic')}?{urlencode({'job': DEFAULT_JOB})}"


def _rows(report: Report) -> list[dict[str, Any]]:
    """With bars as wide as the count is, beside the largest."""
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
    """Of an id: "US/CA" is "California, United States", if there is a table that says so."""
    return "Unknown" if place == UNKNOWN.id else place_name(place)
