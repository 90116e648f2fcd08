"""What views share, whoever writes them: the answer while Redis is away, and how to do without a transaction."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.utils.log import log_response

from components.exceptions import RedisUnavailable

logger = logging.getLogger("components.middleware")  # a name that sites may have in their settings

_View = TypeVar("_View", bound=Callable[..., Any])

RETRY_AFTER = 10  # seconds: enough for a server to restart, without a herd of clients in between


def mark_unavailable(request: HttpRequest, response: HttpResponse, error: RedisUnavailable) -> None:
    """Tell the client when to try again, and log the reason as a warning."""
    response["Retry-After"] = str(RETRY_AFTER)
    log_response(
        "%s %s: %s",
        request.method,
        request.path,
        error,
        response=response,
        request=request,
        logger=logger,
        level="warning",
    )


def without_transaction(view: _View) -> _View:
    """Exempt *view* from the ATOMIC_REQUESTS of every database, which asynchronous views do not support."""
    for alias in connections:
        transaction.non_atomic_requests(using=alias)(view)
    return view
