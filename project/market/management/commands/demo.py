"""Run the whole site, with everything that it needs, on this machine until Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from components.conf import conf
from components.embedded import EmbeddedServer
from components.exceptions import ComponentsError, RedisUnavailable
from components.servers import inspect_server
from components.services.logs import DEFAULT_JOB
from project.market import demo
from project.supervisor import LOG, TOUR, RunallEnded, Supervisor, is_free

READY = """
  What to try
    1. As jack, buy something that joe sells.
    2. In the control room, see the mail to joe go through the queue "mail": {queues}
    3. Read the mail: {mail}
    4. As jack in one browser and joe in another, talk: {chat}
    5. Type a few letters of a name, in any script: who gets your mail, what is for sale: {letters}
    6. As jack and joe, buy in the flash sale of the day, and see without reloading how many remain: {flash}
    7. See how often all of this happened, minute by minute: {counters}
    8. See where the game is played, as its log is counted: {players_today}
       and for longer, in the control room: {traffic}
{redis}
  Fake Game        {site}
                   log in as {players}; password {player_password}
  Control room     {admin}
                   log in as admin, password {admin_password}; the players may look, too

  Ctrl-C stops everything.
"""
TRY_REDIS = """\
    9. End Redis with `kill {pid}`, and go on buying: the site says what does not work.
       Redis comes back after {pause:g} seconds, and nothing is lost.
   The site itself has a tour of all this beside each page, with log-ins by one click, and buttons that break things.
"""
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Command(BaseCommand):
    help = "Run the site with demo data, its processes and its own Redis (unless REDIS_URL is set)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="of 127.0.0.1 (default: 8000)")
        parser.add_argument(
            "--redis-pause",
            type=float,
            default=10.0,
            metavar="SECONDS",
            help="how long the embedded Redis stays away after it has ended (default: 10)",
        )
        parser.add_argument(
            "--no-log", action="store_true", help="run without the game's log and the processes that count it"
        )

    def handle(self, *args: Any, port: int, redis_pause: float, no_log: bool, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError(
                "This is a production site (DEBUG=0); the demo's passwords are public.", returncode=2
            )
        if not 0 < port < 65536 or not is_free(port):
            other = port + 1 if 0 < port < 65535 else 8000
            raise CommandError(
                f"Port {port} of 127.0.0.1 is taken or cannot be used. Choose another: "
                f"make demo PORT={other}, or manage.py demo --port {other}.",
                returncode=2,
            )
        try:
            self._run(port, redis_pause, without=LOG if no_log else ())
        except KeyboardInterrupt:
            self.stdout.write("\nThe demo has stopped. Its data stay in var/ for the next time.")
        except RunallEnded:
            raise CommandError("manage.py runall ended by itself; its last lines above say why.") from None
        except RedisUnavailable as error:
            raise CommandError(f"{error}\nREDIS_URL says where it should be.", returncode=2) from error
        except ComponentsError as error:
            raise CommandError(str(error), returncode=2) from error

    def _run(self, port: int, redis_pause: float, *, without: Collection[str]) -> None:
        _interrupt_on_signals()
        with _redis() as redis:
            if redis is None:
                without = (*without, *TOUR)
            else:
                os.environ["TOUR"] = "1"  # for the processes of the site, which this one starts
            self._say("Preparing the database …")
            call_command("migrate", verbosity=0, interactive=False)
            self._say("Loading players, things and guilds …")
            demo.load()
            self._say("Starting the processes of the site …")
            supervisor = Supervisor(port, redis, redis_pause=redis_pause, say=self._say, without=without)
            supervisor.run(lambda: self._welcome(port, redis, redis_pause))

    def _welcome(self, port: int, redis: EmbeddedServer | None, pause: float) -> None:
        site = f"http://127.0.0.1:{port}"
        self._say(
            READY.format(
                site=site + reverse("market:browse"),
                players=", ".join(demo.PLAYERS),
                player_password=demo.PLAYER_PASSWORD,
                admin=site + reverse("admin:index"),
                admin_password=demo.ADMIN_PASSWORD,
                queues=site + reverse("admin:components_queue_changelist"),
                mail=settings.VAR / "mail",
                letters=site + reverse("guilds:mail"),
                chat=site + reverse("components:chats"),
                flash=site + reverse("market:flash"),
                counters=site + reverse("admin:components_counter_changelist"),
                players_today=site + reverse("players:today"),
                traffic=site + reverse("admin:components_logjob_traffic") + f"?job={DEFAULT_JOB}",
                redis=TRY_REDIS.format(pid=redis.pid, pause=pause) if redis else "",
            )
        )

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


@contextmanager
def _redis() -> Iterator[EmbeddedServer | None]:
    """Return the embedded server, or None if REDIS_URL names a server that answers."""
    folder = conf().embedded
    if folder is None:
        inspect_server()
        yield None
    else:
        with EmbeddedServer(folder) as server:
            yield server


def _interrupt_on_signals() -> None:
    """Turn the first signal to stop into KeyboardInterrupt; further ones must not interrupt the shutdown."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in _STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in _STOP_SIGNALS:
        if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN:  # as nohup requires
            signal.signal(each, stop)
