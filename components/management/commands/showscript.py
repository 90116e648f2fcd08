"""Print a Lua script as the server gets it, with the line numbers that its errors name."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from components.kit.scripts import Script
from components.workers.options import WrongUsage


class Command(BaseCommand):
    help = (
        "Prints a Lua script of this app as the server gets it, with the names of its keys and arguments, "
        "and with its preludes. The line numbers are those of Redis' error messages. Exit codes: 0; 2 if there is no "
        "such script."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="The service and the verb, such as queues/push.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            source = Script(options["name"]).source
        except (FileNotFoundError, NotADirectoryError):
            raise WrongUsage(f"There is no script {options['name']}.") from None
        for number, line in enumerate(source.splitlines(), start=1):
            self.stdout.write(f"{number:4} {line}".rstrip())
