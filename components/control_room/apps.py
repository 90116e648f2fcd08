"""The entry in INSTALLED_APPS that replaces django.contrib.admin, and makes ControlRoomSite the default site."""

from django.contrib.admin.apps import AdminConfig


class ControlRoomAdminConfig(AdminConfig):
    """Django's admin, with the control room first."""

    default_site = "components.control_room.site.ControlRoomSite"
