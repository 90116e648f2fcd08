from django.apps import AppConfig


class GuildsConfig(AppConfig):
    name = "project.guilds"
    verbose_name = "Guilds"

    def ready(self) -> None:
        from . import chats

        chats.follow_memberships()
