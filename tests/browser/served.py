"""
The demo site in an ASGI server of its own: a process that waits for many at once, can be killed and started again.

`python -m tests.browser.served NAME…` makes its database with these users, and prints who they are and what they are
logged in by; an "admin…" may do everything. The database is a file: the process shares no memory with the tests.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import django

SETTINGS = "tests.browser.served_settings"
ROOT = Path(__file__).resolve().parents[2]


class Served:
    """The site; start() and stop() it. Its address stays the same."""

    def __init__(self, folder: Path, redis_url: str, names: tuple[str, ...]) -> None:
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "SERVED_REDIS": redis_url,
            "SERVED_FOLDER": str(folder),
            "PYTHONPATH": str(ROOT),
        }
        made = subprocess.run(
            [sys.executable, "-m", __name__, *names], env=self.environment, check=True, capture_output=True
        )
        told: dict[str, Any] = json.loads(made.stdout)
        #: By user name: the ids of persons, and the keys of their sessions.
        self.ids: dict[str, str] = told["ids"]
        self.sessions: dict[str, str] = told["sessions"]
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def start(self) -> None:
        """The listening socket is inherited: whoever comes before the server is ready waits in its queue."""
        if self._process is not None:
            return
        descriptor = self._socket.fileno()
        command = [sys.executable, "-m", "uvicorn", "project.asgi:application", "--fd", str(descriptor)]
        command += ["--lifespan", "off", "--no-access-log", "--log-level", "warning"]
        self._process = subprocess.Popen(command, env=self.environment, pass_fds=[descriptor])

    def stop(self) -> None:
        """At once, as by the loss of power."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.stop()
        self._socket.close()


def make(names: list[str]) -> dict[str, dict[str, str]]:
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    ids, sessions = {}, {}
    for name in names:
        is_admin = name.startswith("admin")
        user = User.objects.create(username=name, is_staff=is_admin, is_superuser=is_admin)
        client = Client()
        client.force_login(user)
        ids[name] = str(user.pk)
        sessions[name] = client.cookies[settings.SESSION_COOKIE_NAME].value
    return {"ids": ids, "sessions": sessions}


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(json.dumps(make(sys.argv[1:])))
