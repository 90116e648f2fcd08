"""
Refuse the Redis of the settings in a test run: it may be the one that a site is using.

A test run is recognised by what Django's test runner and pytest-django set up, or by COMPONENTS["TEST_RUN"]. In it,
only the private servers of components.testing are asked. See docs/testing.md.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from components.conf import conf
from components.exceptions import RedisNotPrivate

#: The LOCATIONs of the private servers that are in use now.
_private: list[str] = []
_was_test_run = False


@contextmanager
def private(url: str) -> Iterator[None]:
    """Allow the server at *url*, which belongs to the tests of this process."""
    _private.append(url)
    try:
        yield
    finally:
        _private.remove(url)


def is_test_run() -> bool:
    """Return whether Django's test environment is set up in this process, or was: counts are sent after its end."""
    global _was_test_run
    utils = sys.modules.get("django.test.utils")
    if utils is not None and hasattr(utils._TestState, "saved_data"):
        _was_test_run = True
    return _was_test_run


def is_refused() -> bool:
    """Return whether this is a test run, and the Redis of this app is not a private one."""
    found = conf()
    if not (is_test_run() if found.test_run is None else found.test_run):
        return False
    return settings.CACHES.get(found.cache, {}).get("LOCATION") not in _private


def refuse() -> None:
    """Raise RedisNotPrivate if is_refused()."""
    if is_refused():
        raise RedisNotPrivate(
            f"A test asked for the Redis of settings.CACHES[{conf().cache!r}], which may be in use by a site, so "
            "nothing was sent to it. Give tests a private server. With pytest: put "
            'pytest_plugins = ["components.testing"] into the topmost conftest.py, and let the test ask for the '
            "fixture `redis`. With manage.py test: set TEST_RUNNER = "
            '"components.testing.runner.RedisRunner". If only tests use this Redis, set COMPONENTS["TEST_RUN"] = '
            "False."
        )
