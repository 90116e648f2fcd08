"""What an answer says while Redis is away, whoever gives it."""

import logging

from django.http import HttpRequest, HttpResponse
from django.utils.log import log_response

from components.exceptions import RedisUnavailable

logger = logging.getLogger("components.middleware")

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
