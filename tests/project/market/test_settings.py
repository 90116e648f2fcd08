"""The demo site's settings, as different environments see them; each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import django
import pytest

ROOT = Path(__file__).resolve().parents[3]

PRODUCTION = {
    "DEBUG": "0",
    "SECRET_KEY": "a" * 20 + "bcdefghijklmnopqrstuvwxyz0123456789",
    "ALLOWED_HOSTS": "market.example",
    "REDIS_URL": "redis://redis.example:6379/0",
}

SHOW = """
import json, sys
import django
from django.conf import settings
django.setup()
print(json.dumps({name: getattr(settings, name, None) for name in sys.argv[1:]}, default=str))
"""


def python(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run Python with nothing but this environment; warnings are errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "project.settings", **environment},
        capture_output=True,
        text=True,
    )


def settings(*names: str, **environment: str) -> dict[str, Any]:
    result = python("-c", SHOW, *names, environment=environment)
    assert not result.stderr
    return dict(json.loads(result.stdout))


#: Environments with which the site does not start, and what they lack or what is not for them.
REFUSED = [
    *(
        (
            {each: PRODUCTION[each] for each in PRODUCTION if each != name},
            f"A production site (DEBUG=0) needs {name}",
        )
        for name in ("SECRET_KEY", "ALLOWED_HOSTS", "REDIS_URL")
    ),
    ({**PRODUCTION, "TOUR": "1"}, "TOUR is only for `manage.py demo` with its embedded Redis."),
    ({"REDIS_URL": "redis://redis.example:6379/0", "TOUR": "1"}, "TOUR is only for `manage.py demo`"),
]


@pytest.mark.parametrize(("environment", "said"), REFUSED)
def test_a_site_refuses_to_start_without_what_it_needs_or_with_the_tour(
    environment: dict[str, str], said: str
) -> None:
    result = python("manage.py", "check", environment=environment)

    assert result.returncode == 1
    assert f"ImproperlyConfigured: {said}" in result.stderr


CLUSTER = {"REDIS_URL": "redis://a.example,redis://b.example", "REDIS_CLUSTER": "1"}
SENTINELS = {"REDIS_URL": "redis://mymaster/0", "REDIS_SENTINELS": "a.example:26379,b.example:26380"}


def test_a_cluster_and_sentinels_are_asked_for_by_the_environment() -> None:
    of_cluster, of_sentinels = (settings("CACHES", **each)["CACHES"] for each in (CLUSTER, SENTINELS))
    for alias, number in (("default", 1), ("components", 0)):
        assert of_cluster[alias]["LOCATION"] == CLUSTER["REDIS_URL"]
        assert of_cluster[alias]["OPTIONS"]["CLIENT_CLASS"] == "components.cache.ClusterClient"
        options = of_sentinels[alias]["OPTIONS"]
        assert of_sentinels[alias]["LOCATION"] == f"redis://mymaster/{number}"
        assert options["CLIENT_CLASS"] == "components.cache.SentinelClient"
        assert options["CONNECTION_FACTORY"] == "components.cache.SentinelConnectionFactory"
        assert options["SENTINELS"] == [["a.example", 26379], ["b.example", 26380]]


def test_mail_goes_where_its_url_says() -> None:
    url = "smtp+tls://joe:moon@mail.example:587"

    if django.VERSION < (6, 1):
        found = settings("EMAIL_HOST", "EMAIL_PORT", "EMAIL_HOST_USER", "EMAIL_USE_TLS", EMAIL_URL=url)

        assert list(found.values()) == ["mail.example", 587, "joe", True]
    else:
        options = settings("MAILERS", EMAIL_URL=url)["MAILERS"]["default"]["OPTIONS"]

        server = {"host": "mail.example", "port": 587, "username": "joe", "password": "moon"}
        assert options == {**server, "use_tls": True}


def test_a_transaction_on_sqlite_takes_the_write_lock_when_it_begins() -> None:
    options = settings("DATABASES", DATABASE_URL="sqlite:////nowhere/shop.sqlite3")["DATABASES"]["default"][
        "OPTIONS"
    ]

    assert options["transaction_mode"] == "IMMEDIATE"
