"""The site behind a real ASGI server in a thread, for what a test client cannot do: wait, and go away."""

import gc
import http.client
import json
import socket
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from django.core.asgi import get_asgi_application
from django.http import HttpRequest
from django.test.utils import override_settings

from tests.support.waiting import eventually


@dataclass(frozen=True)
class Person:
    """A user who is in no database."""

    pk: str
    is_authenticated: bool = True


class Everybody:
    """People whose names are their ids."""

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        return {id: id for id in ids}

    def find(self, names: Iterable[str]) -> dict[str, str]:
        return {name: name for name in names}

    def refused(self, by: str, ids: Iterable[str]) -> set[str]:
        return set()


async def by_name(request: HttpRequest) -> Person | None:
    name = request.headers["Authorization"].removeprefix("Bearer ")
    return Person(name) if name else None


WITHOUT_DATABASE = {
    "API_AUTHENTICATION": "tests.api.serving.by_name",
    "PEOPLE": "tests.api.serving.Everybody",
}


class Site:
    """A running site: its address, and requests to it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address

    def ask(self, method: str, path: str, content: Any = None, *, by: str = "joe") -> tuple[int, Any, Any]:
        """Make a request, and return the status, the parsed body and the headers of the answer."""
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            connection.request(method, f"/api/{path}", *_body_and_headers(content, by))
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, json.loads(body) if body else None, answer.headers
        finally:
            connection.close()

    @contextmanager
    def waiting(
        self, method: str, path: str, content: Any = None, *, by: str = "joe"
    ) -> Iterator[socket.socket]:
        """Make a request, and leave at the end of the block without reading the answer."""
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        connection.request(method, f"/api/{path}", *_body_and_headers(content, by))
        try:
            yield connection.sock
        finally:
            connection.close()


def _body_and_headers(content: Any, by: str) -> tuple[bytes | None, dict[str, str]]:
    headers = {"Authorization": f"Bearer {by}"}
    if content is None:
        return None, headers
    return json.dumps(content).encode(), {**headers, "Content-Type": "application/json"}


@contextmanager
def serve(**components: Any) -> Iterator[Site]:
    """Run the site, with *components* in the setting of that name."""
    with (
        override_settings(COMPONENTS={**WITHOUT_DATABASE, **components}, ALLOWED_HOSTS=["*"]),
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        options: dict[str, Any] = {
            "lifespan": "off",
            "ws": "none",
            "log_config": None,
            "log_level": "warning",
        }
        server = uvicorn.Server(uvicorn.Config(get_asgi_application(), **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="asgi")
        thread.start()
        try:
            assert eventually(lambda: server.started)
            yield Site(listener.getsockname()[:2])
        finally:
            server.should_exit = server.force_exit = True
            thread.join()
            _collect()


def _collect() -> None:
    """Collect the files with request bodies, which Django leaves open when the server ends first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
