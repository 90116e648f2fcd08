"""The app's entry in INSTALLED_APPS. It opens no connection."""

from types import ModuleType

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _


class ComponentsConfig(AppConfig):
    name = "components"
    verbose_name = _("Components")
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        super().__init__(app_name, app_module)
        if type(self) is ComponentsConfig:  # AppConfig.create() below may make one that derives from it
            self._refuse_others_of_this_label()

    def _refuse_others_of_this_label(self) -> None:
        """Raise ImproperlyConfigured, with more advice than Django gives, if two apps have this app's label."""
        for entry in settings.INSTALLED_APPS:
            if "components" not in entry.split(".")[1:]:
                continue  # this app, or an app that would have to name the label itself: then Django says so
            other = AppConfig.create(entry)
            if other.label == self.label and other.name != self.name:
                raise ImproperlyConfigured(
                    f"INSTALLED_APPS has two apps with the label {self.label!r}: {self.name!r} of "
                    f"django-redis-components, and {entry!r}. Give the other one a label of its own: in its "
                    f'AppConfig, set label = "{other.name.replace(".", "_")}". This renames it in migrations, '
                    "tables and permissions; README.md says how to keep its tables."
                )

    def ready(self) -> None:
        from components import checks  # noqa: F401  (registers the system checks)
        from components.kit.model_inheritance import settle_homes
        from components.people import listen_to_contacts
        from components.services.autocomplete import used_contacts

        listen_to_contacts(used_contacts)
        settle_homes()
