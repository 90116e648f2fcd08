"""
The packages of the extra "logs", and the error if they are missing.

Columns are arrays of numpy, so the error is raised before anything else is imported. numba compiles the fast kernel;
without it, plain Python does the work.
"""

from importlib.util import find_spec

from components.exceptions import ExtraNotInstalled

#: What a user has to run.
INSTALL = 'pip install "django-redis-components[logs]"'

if find_spec("numpy") is None:
    raise ExtraNotInstalled(f"Logs need numpy, which is not installed here. Install the extra: {INSTALL}")


def has_numba() -> bool:
    """Return True if the compiled kernel can be used."""
    return find_spec("numba") is not None
