"""
The addresses of the API, which the services contribute.

No address ends in a slash. Any other address is answered with a problem, not with a page.
"""

from django.urls import URLPattern, URLResolver, include, path

from components.api.endpoints import endpoint, nowhere
from components.api.problems import explain

_anything = endpoint(get=nowhere, post=nowhere, put=nowhere, patch=nowhere, delete=nowhere)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("components.api.people")),
    path("", include("components.services.chat.api.urls")),
    path("", include("components.services.mailboxes.api")),
    path("", include("components.services.autocomplete.api")),
    path("problems/<slug:kind>", explain, name="api-problem"),
    path("<path:path>", _anything),
]
