"""
The views for probes and for Prometheus.

/healthz answers as long as this process does, and asks nothing: if it fails, restart the process. /readyz asks the
database and Redis: if it fails, send no requests here. Both say nothing that a stranger must not know. /metrics tells
more, so it wants the token of COMPONENTS["METRICS_TOKEN"], or a member of staff who may view counters.
"""

import logging
from collections.abc import Callable
from secrets import compare_digest

from django.core.exceptions import PermissionDenied
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from components.conf import conf
from components.kit.release import check_format
from components.views import without_transaction

logger = logging.getLogger(__name__)


@without_transaction  # they answer also while the database is away
@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200."""
    return HttpResponse("ok\n", content_type="text/plain")


@without_transaction
@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """
    Answer 200 if the database and Redis answer, else 503; the body says which of them does not.

    ?without=redis leaves Redis out, for a site whose pages are of use while Redis is away; ?without=database does so
    with the database.
    """
    without = request.GET.getlist("without")
    found = {name: _answers(name, ask) for name, ask in _NEEDED.items() if name not in without}
    return JsonResponse(
        {name: "ok" if is_there else "unavailable" for name, is_there in found.items()},
        status=200 if all(found.values()) else 503,
    )


@without_transaction
@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with all figures, in the format that Prometheus asks for."""
    _check(request)
    try:
        from components.observing.exposition import expose  # prometheus_client is an extra
    except ImportError as error:
        logger.error("/metrics needs prometheus_client, the extra metrics of this package: %s", error)
        return HttpResponse(
            "/metrics needs prometheus_client. Install this package with the extra metrics.\n",
            status=501,
            content_type="text/plain",
        )
    body, content_type = expose(request.headers.get("Accept", ""))
    return HttpResponse(body, content_type=content_type)


def _check(request: HttpRequest) -> None:
    token = conf().metrics_token
    scheme, _blank, given = request.headers.get("Authorization", "").partition(" ")
    if token and scheme.lower() == "bearer" and compare_digest(given.strip().encode(), token.encode()):
        return
    user = getattr(request, "user", None)
    if user is None or not (user.is_active and user.is_staff and user.has_perm("components.view_counter")):
        raise PermissionDenied


def _ask_database() -> None:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT 1")


_NEEDED: dict[str, Callable[[], object]] = {"database": _ask_database, "redis": check_format}


def _answers(name: str, ask: Callable[[], object]) -> bool:
    try:
        ask()
    except Exception as error:  # noqa: BLE001  (whatever it is, this process is not ready)
        logger.warning("Not ready: the %s does not answer: %s", name, error)
        return False
    return True
