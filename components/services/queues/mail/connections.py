"""
Connections to mail servers, which stay open for the next mail: opening one takes longer than sending over it.

A thread that sends takes a connection out, so no two use one. It comes back when the mail is sent, and is closed when
nobody has taken it for two seconds, or after any error.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from smtplib import SMTPException
from threading import Lock, Timer
from typing import Any

from django.core.mail.backends import smtp

from components.kit.forking import in_child, notice

KEPT = 2.0  # seconds
#: What differs between two backends of one server.
_OWN = ("connection", "ssl_context", "_lock", "_partial_connection")

_guard = Lock()
#: The backends whose connections are open and wait, with the time at which they came back.
_idle: list[tuple[float, Any]] = []


@contextmanager
def connected(backend: Any) -> Iterator[Any]:
    """Give *backend*, or another one of the same server whose connection is open. Others than SMTP are left alone."""
    if not isinstance(backend, smtp.EmailBackend):
        yield backend
        return
    notice()
    backend = next((kept for kept in _taken(backend) if _answers(kept)), backend)
    try:
        backend.open()
        yield backend
    except BaseException:
        with suppress(SMTPException, OSError):
            backend.close()
        raise
    with _guard:
        _idle.append((time.monotonic(), backend))
        if len(_idle) == 1:
            _look_again()


def _taken(like: smtp.EmailBackend) -> Iterator[Any]:
    """Yield idle backends of the same server, each once it is taken out."""
    while True:
        with _guard:
            found = next((each for each in reversed(_idle) if _server(each[1]) == _server(like)), None)
            if found is None:
                return
            _idle.remove(found)
        yield found[1]


def _server(backend: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(backend).items() if name not in _OWN}


def _answers(backend: Any) -> bool:
    with suppress(SMTPException, OSError):
        if backend.connection.noop()[0] == 250:
            return True
    backend.close()
    return False


def _look_again() -> None:
    timer = Timer(KEPT, _close_idle)
    timer.daemon = True
    timer.start()


def _close_idle() -> None:
    with _guard:
        old = [each for each in _idle if time.monotonic() - each[0] >= KEPT]
        _idle[:] = [each for each in _idle if each not in old]
        if _idle:
            _look_again()
    for _since, backend in old:
        with suppress(SMTPException, OSError):
            backend.close()


def _forget() -> None:
    """In a forked child: the connections are the parent's."""
    global _guard
    _guard = Lock()
    _idle.clear()


in_child(_forget)
