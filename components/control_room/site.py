"""
ControlRoomSite: an admin site whose index begins with the control room.

Its group is the first, and the address of the group leads to the overview.
ControlRoomAdminConfig of apps.py makes it the default site.
"""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from components.models import Overview


class ControlRoomSite(admin.AdminSite):
    """The admin, with the control room before everything else."""

    site_header = site_title = _("Control room")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the apps, the control room first."""
        found = super().get_app_list(request, app_label)
        return sorted(found, key=lambda app: app["app_label"] != Overview._meta.app_label)

    def app_index(  # type: ignore[override]  # may redirect
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return the index of an app; that of the control room is the overview, for users who may view it."""
        is_control_room = app_label == Overview._meta.app_label and self.is_registered(Overview)
        if is_control_room and self.get_model_admin(Overview).has_view_permission(request):
            overview = reverse("admin:components_overview_changelist", current_app=self.name)
            return HttpResponseRedirect(overview)
        return super().app_index(request, app_label, extra_context)
