"""The addresses of this app, for a project to include: path("", include("components.urls"))."""

from __future__ import annotations

from django.urls import include, path

app_name = "components"

urlpatterns = [
    path("api/", include("components.api.urls")),
    path("chat/", include("components.services.chat.page.urls")),
]
