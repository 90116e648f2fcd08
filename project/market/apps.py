from django.apps import AppConfig


class MarketConfig(AppConfig):
    name = "project.market"
    verbose_name = "Market"
