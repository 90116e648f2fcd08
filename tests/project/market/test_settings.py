"""The demo site's settings, as different environments see them; each in a process of its own."""

from __future__ import annotations

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


@pytest.mark.parametrize("missing", ["SECRET_KEY", "ALLOWED_HOSTS", "REDIS_URL"])
def test_a_production_site_refuses_to_start_without(missing: str) -> None:
    rest = {name: value for name, value in PRODUCTION.items() if name != missing}

    result = python("manage.py", "check", environment=rest)

    assert result.returncode == 1
    assert (
        f"ImproperlyConfigured: A production site (DEBUG=0) needs {missing} in its environment"
        in result.stderr
    )


def test_all_that_is_missing_is_named_at_once() -> None:
    result = python("manage.py", "check", environment={"DEBUG": "0"})

    assert "needs SECRET_KEY, ALLOWED_HOSTS, REDIS_URL in its environment" in result.stderr


@pytest.mark.slow
def test_a_production_site_passes_the_deployment_check() -> None:
    result = python("manage.py", "check", "--deploy", "--fail-level", "INFO", environment=PRODUCTION)

    assert result.returncode == 0, result.stderr
    assert "no issues" in result.stdout


def test_a_fresh_clone_is_a_development_site_of_its_own() -> None:
    found = settings("DEBUG", "DATABASES", "CACHES", "COMPONENTS")

    assert found["DEBUG"] is True
    assert found["DATABASES"]["default"]["NAME"] == str(ROOT / "var" / "db.sqlite3")
    assert found["COMPONENTS"]["EMBEDDED"] == str(ROOT / "var" / "redis")
    assert found["CACHES"]["default"]["LOCATION"].startswith("unix://")


@pytest.mark.parametrize("url", ["", "sqlite:////srv/market.sqlite3"])
def test_sqlite_is_made_fit_for_several_processes(url: str) -> None:
    options = settings("DATABASES", **{"DATABASE_URL": url} if url else {})["DATABASES"]["default"]["OPTIONS"]

    assert options["transaction_mode"] == "IMMEDIATE"
    assert options["timeout"] == 20
    assert "journal_mode=WAL" in options["init_command"]


def test_another_database_is_taken_as_it_is() -> None:
    database = settings("DATABASES", DATABASE_URL="postgres://joe:moon@db.example/market")["DATABASES"][
        "default"
    ]

    assert (database["HOST"], database["NAME"], database["USER"]) == ("db.example", "market", "joe")
    assert not database.get("OPTIONS")


def test_the_prefix_keeps_the_cache_apart_too() -> None:
    found = settings("COMPONENTS", "CACHES", COMPONENTS_PREFIX="staging")

    assert found["COMPONENTS"]["PREFIX"] == "staging"
    assert found["CACHES"]["default"]["KEY_PREFIX"] == "staging:cache"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "ours", "default"),
    [
        ({"REDIS_URL": "redis://redis.example"}, "redis://redis.example", "redis://redis.example/1"),
        ({"REDIS_URL": "redis://redis.example/15"}, "redis://redis.example/15", "redis://redis.example/14"),
        ({"REDIS_URL": "unix:///run/redis.sock"}, "unix:///run/redis.sock", "unix:///run/redis.sock?db=1"),
        (
            {"REDIS_URL": "redis://redis.example/0", "CACHE_URL": "redis://cache.example/0"},
            "redis://redis.example/0",
            "redis://cache.example/0",
        ),
    ],
)
def test_queues_and_the_default_cache_have_different_databases(
    environment: dict[str, str], ours: str, default: str
) -> None:
    """cache.clear() empties a database."""
    found = settings("COMPONENTS", "CACHES", **environment)

    assert found["COMPONENTS"]["CACHE"] == "components"
    assert found["CACHES"]["components"]["LOCATION"] == ours
    assert found["CACHES"]["default"]["LOCATION"] == default


@pytest.mark.slow
def test_the_embedded_server_holds_both_databases() -> None:
    found = settings("CACHES")["CACHES"]

    assert found["default"]["LOCATION"] == f"{found['components']['LOCATION']}?db=1"


@pytest.mark.slow
def test_a_cluster_is_asked_for_by_the_environment_and_may_have_several_urls() -> None:
    nodes = "redis://a.example,redis://b.example"
    found = settings("CACHES", REDIS_URL=nodes, REDIS_CLUSTER="1")["CACHES"]

    for alias in ("default", "components"):
        assert found[alias]["LOCATION"] == nodes
        assert found[alias]["OPTIONS"]["CLIENT_CLASS"] == "components.cache.ClusterClient"


def test_sentinels_are_asked_for_by_the_environment() -> None:
    found = settings(
        "CACHES", REDIS_URL="redis://mymaster/0", REDIS_SENTINELS="a.example:26379,b.example:26380"
    )["CACHES"]

    for alias, number in (("default", 1), ("components", 0)):
        options = found[alias]["OPTIONS"]
        assert found[alias]["LOCATION"] == f"redis://mymaster/{number}"
        assert options["CLIENT_CLASS"] == "components.cache.SentinelClient"
        assert options["CONNECTION_FACTORY"] == "components.cache.SentinelConnectionFactory"
        assert options["SENTINELS"] == [["a.example", 26379], ["b.example", 26380]]


def test_cluster_and_sentinels_exclude_each_other() -> None:
    result = python(
        "manage.py", "check", environment={**PRODUCTION, "REDIS_CLUSTER": "1", "REDIS_SENTINELS": "a:1"}
    )

    assert "REDIS_CLUSTER and REDIS_SENTINELS cannot both be set" in result.stderr


def test_mail_goes_where_its_url_says() -> None:
    url = "smtp+tls://joe:moon@mail.example:587"

    if django.VERSION < (6, 1):
        found = settings("EMAIL_HOST", "EMAIL_PORT", "EMAIL_HOST_USER", "EMAIL_USE_TLS", EMAIL_URL=url)

        assert list(found.values()) == ["mail.example", 587, "joe", True]
    else:
        options = settings("MAILERS", EMAIL_URL=url)["MAILERS"]["default"]["OPTIONS"]

        assert options == {
            "host": "mail.example",
            "port": 587,
            "username": "joe",
            "password": "moon",
            "use_tls": True,
        }


def test_a_site_behind_a_proxy_redirects_nobody_who_came_by_https() -> None:
    assert settings("SECURE_PROXY_SSL_HEADER", **PRODUCTION, BEHIND_TLS_PROXY="1") == {
        "SECURE_PROXY_SSL_HEADER": ["HTTP_X_FORWARDED_PROTO", "https"]
    }


@pytest.mark.slow
def test_https_can_be_left_to_a_private_network() -> None:
    found = settings(
        "SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "SECURE_HSTS_SECONDS", **PRODUCTION, HTTPS="0"
    )

    assert found == {"SECURE_SSL_REDIRECT": False, "SESSION_COOKIE_SECURE": False, "SECURE_HSTS_SECONDS": 0}
