"""
What the extra "logs" installs, and the error for where it is not.

numpy is needed by all of this package, so its absence is told before anything else is imported. numba compiles the
fastest kernel; without it, numpy does the work.
"""

from importlib.util import find_spec

from components.exceptions import ExtraNotInstalled

#: What a user has to do.
INSTALL = 'pip install "components[logs]"'

if find_spec("numpy") is None:
    raise ExtraNotInstalled(f"Logs need numpy, which is not installed here. Install the extra: {INSTALL}")


def has_numba() -> bool:
    """Whether the compiled kernel can be used."""
    return find_spec("numba") is not None
