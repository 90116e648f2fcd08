"""What the tour's part of each page shows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from project.market import demo

from .middleware import done
from .shows import SHOWS
from .steps import STEPS, done_by
from .tracing import Trace


def tour(request: HttpRequest) -> dict[str, Any]:
    """Return the steps and whether each is done, the log-ins, the buttons, and the visitor's last purchase."""
    match = request.resolver_match
    names = {*done(request), *(done_by(f"{request.method} {match.view_name}") if match else [])}
    return {
        "tour": {
            "steps": [(step, step.name in names) for step in STEPS],
            "done": sum(step.name in names for step in STEPS),
            "people": [*demo.PLAYERS, "admin"],
            "shows": SHOWS.values(),
            "trace": SimpleLazyObject(lambda: Trace.of(request)),
        }
    }
