"""
numba's njit, fit for an installation: compiled when first used, and kept for the next process where that is possible.

numba writes what it has compiled into __pycache__ beside the source, or into the user's folder for caches where
that may not be written to, or where NUMBA_CACHE_DIR says. If it can write nowhere, each process compiles for
itself, which takes some seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """*function* as machine code. Other threads run meanwhile."""
    try:
        return cast(_F, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder for the cache
        return cast(_F, njit(nogil=True)(function))
