from django.apps import AppConfig


class GuildsConfig(AppConfig):
    name = "project.guilds"
    verbose_name = "Guilds"

    def ready(self) -> None:
        from . import books, chats  # noqa: F401  (the books follow what is saved and deleted)

        chats.follow_memberships()
