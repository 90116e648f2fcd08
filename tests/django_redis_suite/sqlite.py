"""What django-redis' tests call the settings sqlite, with the client class and the server of the environment."""

import os
from typing import Any


def cache(location: str | list[str], **more: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"CLIENT_CLASS": os.environ["CLIENT_CLASS"]}
    if sentinel := os.environ.get("SENTINEL"):
        options["SENTINELS"] = [("127.0.0.1", int(sentinel))]
        options["CONNECTION_FACTORY"] = "components.cache.SentinelConnectionFactory"
    return {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": location,
        "OPTIONS": options,
        **more,
    }


URL = os.environ["REDIS_URL"]
CACHES = {
    "default": cache([URL, URL]),
    "doesnotexist": cache("redis://127.0.0.1:1"),
    "sample": cache(URL),
    "with_prefix": cache(URL, KEY_PREFIX="test-prefix"),
}
COMPONENTS = {"TEST_RUN": False}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "components",
]
SECRET_KEY = "django-redis"
TASKS: dict[str, Any] = {}
USE_TZ = False
