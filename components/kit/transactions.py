"""Views that no setting of a database puts into a transaction."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connections, transaction

_View = TypeVar("_View", bound=Callable[..., Any])


def without_transaction(view: _View) -> _View:
    """Exempt *view* from the ATOMIC_REQUESTS of every database, which asynchronous views do not support."""
    for alias in connections:
        transaction.non_atomic_requests(using=alias)(view)
    return view
