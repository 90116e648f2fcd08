from django.apps import AppConfig


class PlayersConfig(AppConfig):
    name = "project.players"
    verbose_name = "Players"
