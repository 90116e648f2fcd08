"""
The demo site's settings, made fit for tests: whatever the shell says, nothing is shared with a running site.

Redis is nowhere until a test asks for the fixture `redis`. The database is in memory, or a test database
beside the one that DATABASE_URL names.
"""

import os

os.environ.update(
    DEBUG="1",
    HTTPS="0",
    LOG_KERNEL="naive",
    EMAIL_URL="memorymail://",
    COMPONENTS_PREFIX="components",
    REDIS_URL="unix:///nowhere/this-test-does-not-ask-for-the-fixture-redis",
    REDIS_CLUSTER="0",
    REDIS_SENTINELS="",
    CACHE_URL="",
    METRICS_TOKEN="",
)
os.environ.pop("TOUR", None)
os.environ.setdefault("DATABASE_URL", "sqlite://:memory:")

from project.settings import *  # noqa: F403

# Who may write to whom, and search for whom, are the demo's own rules, which its own tests ask for.
del COMPONENTS["PEOPLE"], COMPONENTS["BOOKS"]  # noqa: F405

# One alias for all, which a test leads elsewhere with a single setting; tests of settings have aliases of their own.
CACHES = {"default": CACHES[COMPONENTS.pop("CACHE")]}  # noqa: F405

# Many tests look at all keys, or at all that Redis is asked: what counts, there, is the test's own.
MIDDLEWARE.remove("components.middleware.CountRequestsMiddleware")  # noqa: F405
COMPONENTS["COUNT_SERVICES"] = False  # noqa: F405

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# A task that fails is dead at once, except where a test is about retries.
TASKS["default"].setdefault("OPTIONS", {})["max_attempts"] = 1  # noqa: F405

INSTALLED_APPS += ["tests", "tests.db", "project.tour"]  # noqa: F405
# Without its addresses and its part of the pages, the tour cannot be seen. The live server of all tests has it, too.
MIDDLEWARE.append("project.tour.middleware.tour")  # noqa: F405
