from django.apps import AppConfig


class GuildsConfig(AppConfig):
    name = "project.guilds"
    verbose_name = "Guilds"

    def ready(self) -> None:
        from . import books, chats  # noqa: F401  (the books follow saved and deleted rows)

        chats.follow_memberships()
