"""Print the users of Redis that a site needs, each with the least rights, as an ACL file or as commands."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from components.kit.rights import USERS, line, without_prefix
from components.workers.options import WrongUsage

#: The user for the people who run Redis: backups, MONITOR, another ACL.
OPERATOR = "operator"


class Command(BaseCommand):
    help = (
        "Prints users of Redis for this site: web (pages and the HTTP API), worker (workers, poller, daemons), admin "
        "(a site that serves the Django admin) and operator (everything). A release may need other rights, so print "
        "them anew with each. The passwords come from the environment, as "
        "REDIS_PASSWORD_WEB and so on; only their SHA-256 is printed. Nothing is sent to Redis. Exit codes: 0; 2 if "
        "a user is unknown, their password is missing, or a cache has no prefix of its own."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", nargs="*", help="web, worker, admin or operator (default: all).")
        parser.add_argument(
            "--commands",
            action="store_true",
            help="Print ACL SETUSER commands for a running server. Otherwise print an ACL file, which also turns the "
            "user default off.",
        )
        parser.add_argument("--cluster", action="store_true", help="The server is a node of a Redis Cluster.")

    def handle(self, *args: Any, **options: Any) -> None:
        users = options["user"] or [*USERS, OPERATOR]
        if unknown := [user for user in users if user not in (*USERS, OPERATOR)]:
            known = ", ".join((*USERS, OPERATOR))
            raise WrongUsage(f"There is no user {unknown[0]}; there are {known}.")
        if bare := without_prefix():
            raise WrongUsage(
                f"CACHES[{bare[0]!r}] has no KEY_PREFIX, so its keys begin as those of every other site without one, "
                "which these users could then read and change. Give it one; what it has cached is made anew."
            )
        lines = [line(user, _password(user), cluster=options["cluster"]) for user in users]
        if options["commands"]:
            lines = [f"ACL SETUSER {each.removeprefix('user ')}" for each in lines]
        else:
            lines.append("user default off")
        self.stdout.write("\n".join(lines))


def _password(user: str) -> str:
    name = f"REDIS_PASSWORD_{user.upper()}"
    if not (found := os.environ.get(name)):
        raise WrongUsage(f"The environment has no {name}, the password of the user {user}.")
    return found
