"""The addresses of this app, for a project to include: path("", include("components.urls"))."""

from django.urls import include, path
from django.views.i18n import JavaScriptCatalog

from components.conf import warn_unless_installed

app_name = "components"
warn_unless_installed()

urlpatterns = [
    path("api/", include("components.api.urls")),
    path("chat/", include("components.services.chat.page.urls")),
    # The texts of scripts, for pages that are not in the admin. Load it as a classic script with "defer".
    path("components/jsi18n/", JavaScriptCatalog.as_view(packages=["components"]), name="jsi18n"),
]
