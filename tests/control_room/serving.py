"""The demo site in an ASGI server that waits for its requests when it is told to stop, without a limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import requests

from tests.browser.served import Served
from tests.project.test_demo import free_port
from tests.support.waiting import eventually

SERVERS = {
    "uvicorn": "-m uvicorn project.asgi:application --port {port} --lifespan off --log-level warning",
    "granian": "-m granian --interface asginl project.asgi:application --port {port} --workers-kill-timeout 60",
}
#: What live.js sends.
HEADERS = {"X-Live": "2", "X-Live-Parts": "-", "Accept": "text/event-stream"}


class Site:
    """A site, with its users and their sessions; server() is the process."""

    def __init__(self, folder: Path, redis_url: str, names: tuple[str, ...]) -> None:
        self._served = Served(folder, redis_url, names)
        self.url = ""
        self.process: subprocess.Popen[bytes] | None = None
        self._log = folder / "log"

    def start(self, name: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, *SERVERS[name].format(port=port).split()]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=self._served.environment, stdout=log, stderr=log, start_new_session=True
            )
        assert eventually(self._answers, within=60), self._log.read_text()

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/healthz", timeout=10).status_code > 0
        except requests.ConnectionError:
            return False

    def stop(self, number: int = signal.SIGTERM, *, within: float = 60) -> int:
        """Tell it to stop; its exit code."""
        assert self.process
        self.process.send_signal(number)
        return self.process.wait(within)

    def kill(self) -> None:
        if self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # the workers, too
            self.process.wait()
            self.process = None

    def close(self) -> None:
        self.kill()
        self._served.close()

    def run(self, code: str) -> None:
        """Run a few lines of Python beside it, on the same database."""
        program = f"import django; django.setup()\nfrom django.contrib.auth.models import User\n{code}"
        subprocess.run([sys.executable, "-c", program], env=self._served.environment, check=True)

    def end_session(self, name: str) -> None:
        key = self._served.sessions[name]
        self.run(
            "from django.contrib.sessions.models import Session\n"
            f"Session.objects.filter(session_key={key!r}).delete()"
        )

    def ask(self, name: str, path: str, **headers: str | None) -> requests.Response:
        return requests.get(
            self.url + path,
            headers={**HEADERS, **headers},
            cookies={"sessionid": self._served.sessions[name]},
            stream=True,
            timeout=60,
            allow_redirects=False,
        )


def events(response: requests.Response) -> Iterator[tuple[str, Any]]:
    """The events of a stream with their data, as they come."""
    unread = ""
    for some in response.iter_content(chunk_size=None, decode_unicode=False):
        *whole, unread = (unread + some.decode()).split("\n\n")
        for each in whole:
            if not each.startswith(":"):
                event, _, data = each.removeprefix("event: ").partition("\ndata: ")
                yield event, json.loads(data) if data else None
