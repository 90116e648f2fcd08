from django.apps import AppConfig


class MarketConfig(AppConfig):
    name = "project.market"
    verbose_name = "Market"

    def ready(self) -> None:
        from . import books  # noqa: F401  (from now on they follow what is saved and deleted)
