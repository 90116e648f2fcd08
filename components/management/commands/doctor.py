"""Say what is wrong with a running site, or which settings are missing."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.checks import ERROR, CheckMessage
from django.core.checks.messages import CRITICAL, DEBUG, INFO, WARNING
from django.core.management.base import BaseCommand, CommandParser

from components.doctor import diagnose
from components.doctor.missing import missing_settings

FORMAT = 1
_LEVELS = {DEBUG: "debug", INFO: "info", WARNING: "warning", ERROR: "error", CRITICAL: "critical"}


class Command(BaseCommand):
    help = (
        "Examines this site: the settings, the Redis that they name, the rights of its user, migrations, queues and "
        "workers, cached rows, logs. Each finding comes with its remedy. Nothing is changed. Exit codes: 0 nothing "
        "was found; 1 only warnings; 2 errors."
    )
    requires_system_checks = ()  # they are among the findings

    def add_base_argument(self, parser: CommandParser, *args: Any, **kwargs: Any) -> None:
        """Let --settings without a module be an option of this command."""
        if args == ("--settings",):
            kwargs |= {
                "nargs": "?",
                "const": "",
                "help": "Without a module, only print the settings that are missing, to be put at the end of yours.",
            }
        super().add_base_argument(parser, *args, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--json",
            action="store_true",
            help="Write JSON; the manual lists its keys.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["settings"] == "":
            self.stdout.write(missing_settings() or "# Nothing is missing.\n", ending="")
            return
        found = sorted(diagnose(), key=lambda message: -message.level)
        if options["json"]:
            self.stdout.write(json.dumps({"format": FORMAT, "findings": list(_document(found))}, indent=2))
        else:
            self.stdout.write("\n".join(_text(found)))
        if _wrong(found):
            raise SystemExit(2 if found[0].level >= ERROR else 1)


def _document(found: Iterable[CheckMessage]) -> Iterable[dict[str, str]]:
    for message in found:
        yield {
            "id": str(message.id),
            "level": _LEVELS.get(message.level, str(message.level)),
            "message": str(message.msg),
            "remedy": str(message.hint or ""),
        }


def _text(found: list[CheckMessage]) -> Iterable[str]:
    for each in _document(found):
        yield f"{each['level'].upper()} {each['id']}: {each['message']}"
        yield f"    {each['remedy']}\n"
    number = len(_wrong(found))
    yield f"{number} finding{'s' * (number != 1)}." if number else "Nothing is wrong."


def _wrong(found: list[CheckMessage]) -> list[CheckMessage]:
    return [message for message in found if message.level >= WARNING]
