"""The app's entry in INSTALLED_APPS. It opens no connection."""

from __future__ import annotations

from django.apps import AppConfig


class ComponentsConfig(AppConfig):
    name = "components"
    verbose_name = "Components"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from components import checks  # noqa: F401  (registers the system checks)
        from components.people import listen_to_contacts
        from components.services.autocomplete import used_contacts

        listen_to_contacts(used_contacts)
