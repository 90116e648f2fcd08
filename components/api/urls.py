"""The addresses of the API. None ends in a slash; whatever is none of them is a problem, not a page."""

from __future__ import annotations

from django.urls import include, path

from components.api.endpoints import endpoint, nowhere
from components.api.problems import explain

urlpatterns = [
    path("", include("components.people.api")),
    path("", include("components.services.chat.api.urls")),
    path("", include("components.services.mailboxes.api")),
    path("", include("components.services.autocomplete.api")),
    path("problems/<slug:kind>", explain, name="api-problem"),
    path("<path:path>", endpoint(**dict.fromkeys(("get", "post", "put", "patch", "delete"), nowhere))),
]
