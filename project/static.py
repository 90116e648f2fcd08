"""
Static files without a second server: WhiteNoise as a middleware that also works under ASGI.

WhiteNoise's own middleware is synchronous. Between an ASGI server and an async view it would occupy a thread while
the view waits, and its streamed responses would be read as a whole, with a warning. This middleware leaves async
requests async, and answers with the whole file, since static files are small.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from whitenoise.middleware import WhiteNoiseMiddleware

Handler = Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def static_files(get_response: Handler) -> Handler:
    """Answer requests for static files, and pass all other requests on."""
    noise = WhiteNoiseMiddleware(get_response)

    if iscoroutinefunction(get_response):

        async def pass_async(request: HttpRequest) -> HttpResponseBase:
            return _static_file(noise, request) or await get_response(request)

        return pass_async

    def pass_sync(request: HttpRequest) -> HttpResponseBase:
        return _static_file(noise, request) or get_response(request)  # type: ignore[return-value]

    return pass_sync


def _static_file(noise: WhiteNoiseMiddleware, request: HttpRequest) -> HttpResponse | None:
    find = noise.find_file if noise.autorefresh else noise.files.get
    found = find(request.path_info)
    if found is None:
        return None
    answer = found.get_response(request.method, request.META)
    response = HttpResponse(status=int(answer.status))
    if answer.file is not None:
        with answer.file:
            response.content = answer.file.read()
    del response["Content-Type"]
    for name, value in answer.headers:
        response[name] = value
    return response
