"""
The demo site: the market at the root, guilds, chats and the API beside it, the control room under /admin/, probes and
metrics.
"""

from django.conf import settings
from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.utils.functional import lazy
from django.views.generic import RedirectView

#: Browsers request this icon for pages that name none, such as the admin's.
icon = RedirectView.as_view(url=lazy(static, str)("market/coin.svg"))

urlpatterns = [
    path("admin/", admin.site.urls),
    path("favicon.ico", icon),
    path("", include("components.urls")),
    path("", include("components.observing.urls")),  # nginx keeps these inside: deploy/nginx
    path("", include("project.guilds.urls")),
    path("", include("project.players.urls")),
    path("", include("project.market.urls")),
]

if settings.TOUR:
    urlpatterns.insert(0, path("tour/", include("project.tour.urls")))
