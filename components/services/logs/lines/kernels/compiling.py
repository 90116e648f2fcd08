"""
numba's njit for installed packages: compiled when first used, and kept for the next process if that is possible.

numba writes what it has compiled into NUMBA_CACHE_DIR if that is set, into __pycache__ beside the source, or into the
user's folder for caches. If it cannot write to any of them, each process compiles for itself, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Return *function* as machine code. Other threads run while it runs."""
    try:
        return cast(_F, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder for the cache
        return cast(_F, njit(nogil=True)(function))
