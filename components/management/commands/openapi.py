"""Print the OpenAPI description of the HTTP API."""

from typing import Any

from django.core.management.base import BaseCommand

from components.api import openapi


class Command(BaseCommand):
    help = (
        "Prints the OpenAPI description of the HTTP API, as the endpoints declare it. "
        "components/static/components/openapi.json holds what it prints. Exit codes: 0."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(openapi.text(), ending="")
