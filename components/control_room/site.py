"""
ControlRoomSite: an admin site whose index begins with the control room.

Its group is the first, the overview is the first of the group, and badges say what needs attention. The address of
the group leads to the overview. ControlRoomAdminConfig of apps.py makes it the default site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy as _

from components.models import Overview
from components.reports import Badge
from components.templatetags.control_room import overview_first

_COMMA = mark_safe('<span class="visually-hidden">, </span>')


class ControlRoomSite(admin.AdminSite):
    """The admin, with the control room before everything else."""

    site_header = site_title = _("Control room")
    index_template = "admin/components/index.html"

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the apps, the control room first."""
        found = super().get_app_list(request, app_label)
        overview_first(found)
        return sorted(found, key=lambda app: app["app_label"] != Overview._meta.app_label)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Return the index, with badges unless Redis is away."""
        app_list = self.get_app_list(request)
        pages: Any = self.is_registered(Overview) and self.get_model_admin(Overview)
        if pages:
            _add_badges(app_list, pages.badges(request))
        return super().index(request, {"app_list": app_list, **(extra_context or {})})

    def app_index(  # type: ignore[override]  # may redirect
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return the index of an app; that of the control room is the overview, for users who may view it."""
        is_control_room = app_label == Overview._meta.app_label and self.is_registered(Overview)
        if is_control_room and self.get_model_admin(Overview).has_view_permission(request):
            overview = reverse("admin:components_overview_changelist", current_app=self.name)
            return HttpResponseRedirect(overview)
        return super().app_index(request, app_label, extra_context)


def _add_badges(app_list: Sequence[dict[str, Any]], badges: Mapping[str, Sequence[Badge]]) -> None:
    """Add *badges* to the names of models, which the admin's templates show as they are."""
    ours = [app for app in app_list if app["app_label"] == Overview._meta.app_label]
    for model in (model for app in ours for model in app["models"]):
        if found := badges.get(model["object_name"]):
            classes_and_texts = ((" serious" if badge.is_serious else "", badge.text) for badge in found)
            badge = '<span class="control-room-badge{}">{}</span>'
            model["name"] = format_html(
                '{}<span class="visually-hidden">: </span> <span class="control-room-badges">{}</span>',
                model["name"],
                format_html_join(_COMMA, badge, classes_and_texts),
            )
