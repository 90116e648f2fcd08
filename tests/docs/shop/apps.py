from django.apps import AppConfig


class MarketConfig(AppConfig):
    name = "tests.docs.shop"
    label = "market"
    default_auto_field = "django.db.models.BigAutoField"
