"""
Streams: live refresh by server-sent events. One stream serves a page for as long as it is open and visible.

A stream asks for the page as its reader would, with all middleware, so the session and the permissions are checked
each time, and sends what has changed since. Pages are made by a few threads for all streams together: with more
readers each waits for its turn, and Redis has no more to do. Between two turns a stream holds neither a thread nor a
connection to the database.

The events are "parts" (what Version.since() returns), "same" (nothing has changed), "away" (status 503, Redis is
away), "gone" (the reader may not see the page any more) and "failed". After the last two the stream ends. It also
ends after some minutes and when the server stops; live.js then asks again. A request without a place, and every
request under WSGI, gets what a poll gets.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started, setting_changed
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix
from django.utils.cache import patch_vary_headers

from components.api.waiting import let_go
from components.conf import conf
from components.control_room.live import CELLS, Version, known_to, takes_gzip
from components.kit.endings import at_end, at_interrupt

TYPE = "text/event-stream"
#: Seconds between two versions of a page, as live.js may choose, and after Redis was away.
_INTERVALS = (2.0, 60.0)
_WHILE_AWAY = 10.0
#: Seconds between two signs of life, less than the half minute after which live.js gives up.
_BEAT = 10.0
#: Seconds that a stream lasts, of which up to a fifth is subtracted at random.
_LONGEST = 300.0
#: How many pages are made at once, for all streams of a process.
_AT_ONCE = 2
#: The window and the memory of a compressor, 160 KB for each stream: rows that differ from the last ones only in
#: their age take a few bytes.
_WINDOW, _MEMORY = 15, 6

#: How many streams each person has. A person without any has no entry.
_open: Counter[str] = Counter()
#: The futures that end the streams.
_ends: set[asyncio.Future[None]] = set()


class _Seen(NamedTuple):
    """What a look at the page has found: an event, its data, and the digests that the reader has then."""

    event: str
    data: str = ""
    digests: Sequence[str] = ()


class _Inside(BaseHandler):
    """Answers requests in a thread of this process, with all middleware of the project."""

    @classmethod
    @cache
    def made(cls) -> _Inside:
        handler = cls()
        handler.load_middleware()
        return handler


def stream(request: HttpRequest) -> StreamingHttpResponse | None:
    """Return a stream of the page of *request*; None if it wants none, or can have none."""
    # Another site could ask for a stream, but not with a header of its own.
    if "X-Live-Parts" not in request.headers or TYPE not in request.headers.get("Accept", ""):
        return None
    person = str(request.user.pk)
    if request.method != "GET" or not isinstance(request, ASGIRequest) or _is_full(person):
        return None
    response = StreamingHttpResponse(_sent(request, person), content_type=TYPE)
    if takes_gzip(request):
        response["Content-Encoding"] = "gzip"
    patch_vary_headers(response, ["Accept", "Accept-Encoding"])
    response["X-Accel-Buffering"] = "no"  # nginx would wait for more
    return response


def streams() -> int:
    """Return how many streams this process has now."""
    return _open.total()


def _is_full(person: str) -> bool:
    return _open.total() >= conf().max_streams or _open.get(person, 0) >= conf().max_streams_per_person


async def _sent(request: ASGIRequest, person: str) -> AsyncIterator[bytes]:
    """Yield what is sent, compressed if the reader can take that."""
    packed = zlib.compressobj(6, zlib.DEFLATED, 16 + _WINDOW, _MEMORY) if takes_gzip(request) else None
    if _is_full(person):  # others were faster
        return
    with _place(person) as end:
        await let_go()
        async for text in _events(request, end):
            sent = text.encode()
            yield packed.compress(sent) + packed.flush(zlib.Z_SYNC_FLUSH) if packed else sent
        if packed:
            yield packed.flush()


@contextmanager
def _place(person: str) -> Iterator[asyncio.Future[None]]:
    """Take a place for a stream of *person*, and yield the future that ends it."""
    _heed_signals()
    end = asyncio.get_running_loop().create_future()
    _open[person] += 1
    _ends.add(end)
    try:
        yield end
    finally:
        _ends.discard(end)
        end.cancel()
        _open[person] -= 1
        if not _open[person]:
            del _open[person]


async def _events(request: ASGIRequest, end: asyncio.Future[None]) -> AsyncIterator[str]:
    loop, known, pause = asyncio.get_running_loop(), known_to(request), _interval(request)
    until = loop.time() + _LONGEST * random.uniform(0.8, 1)
    while loop.time() < until:
        # An empty context, so that the language and the time zone are those that middleware activates.
        look = loop.run_in_executor(_threads(), Context().run, _look, request, known)
        try:
            while not (await _first(_BEAT, look, end)):
                yield ": still there\n\n"
        finally:
            look.cancel()
        if end.done():
            return
        seen = look.result()
        yield f"event: {seen.event}\ndata: {seen.data}\n\n"
        if seen.event in ("gone", "failed"):
            return
        known = [*(seen.digests or known)]
        due = loop.time() + (max(pause, _WHILE_AWAY) if seen.event == "away" else pause)
        while (left := due - loop.time()) > 0:
            if await _first(min(left, _BEAT), end):
                return
            if left > _BEAT:
                yield ": still there\n\n"


async def _first(seconds: float, *futures: asyncio.Future[Any]) -> bool:
    """Wait until one of *futures* is done. Return False if that takes longer than *seconds*."""
    done, _waiting = await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


def _interval(request: HttpRequest) -> float:
    least, most = _INTERVALS
    try:
        return min(max(float(int(request.headers.get("X-Live", ""))), least), most)
    except ValueError:
        return 5.0


def _look(request: ASGIRequest, known: Sequence[str]) -> _Seen:
    """Ask for the page again. Runs in a thread."""
    response = _answer(request)
    try:
        if response.status_code == 503:
            return _Seen("away")
        if response.status_code != 200 or response.streaming:
            return _Seen("gone" if response.status_code < 500 else "failed")
        version = Version.of(response.text, CELLS)  # type: ignore[attr-defined]  # it is no stream
        if version.digests == [*known]:
            return _Seen("same", "", known)
        return _Seen("parts", version.since(known), version.digests)
    finally:
        response.close()  # sends request_finished


def _answer(request: ASGIRequest) -> HttpResponseBase:
    scope = request.scope
    set_script_prefix(get_script_prefix(scope))
    request_started.send(sender=_Inside, scope=scope)
    again = type(request)(scope, BytesIO())
    again.META["HTTP_ACCEPT"] = "text/html"
    # It is the whole part that is compared with the last one, as it is.
    for name in ("HTTP_X_LIVE_PARTS", "HTTP_IF_NONE_MATCH", "HTTP_ACCEPT_ENCODING"):
        again.META.pop(name, None)
    return _Inside.made().get_response(again)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="live")


@cache
def _heed_signals() -> None:
    """End all streams when the server is told to stop. By the first stream it has handlers of its own."""
    at_end(_end_all)
    at_interrupt(_end_all)


def _end_all() -> None:
    """End all streams. Called from any thread."""
    for end in [*_ends]:
        with suppress(RuntimeError):  # raised if the loop is closed
            end.get_loop().call_soon_threadsafe(_set, end)


def _set(end: asyncio.Future[None]) -> None:
    if not end.done():
        end.set_result(None)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in ("MIDDLEWARE", "ROOT_URLCONF") and settings.configured:
        _Inside.made.cache_clear()


setting_changed.connect(_forget, dispatch_uid="components.control_room.streams")
