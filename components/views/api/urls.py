"""The addresses of the API. None ends in a slash; whatever is none of them is a problem, not a page."""

from __future__ import annotations

from django.urls import path

from components.views.api import persons, problems
from components.views.api.endpoints import endpoint, nowhere

_ANY = dict.fromkeys(("get", "post", "put", "patch", "delete"), nowhere)

urlpatterns = [
    path("people", endpoint(get=persons.find), name="api-people"),
    path("problems/<slug:kind>", problems.explain, name="api-problem"),
    path("<path:path>", endpoint(**_ANY)),
]
