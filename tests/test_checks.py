"""The system checks: each id fires on what it is for, and is quiet otherwise. None asks Redis."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.test.utils import override_settings

import components
from tests.db.models import Ware
from tests.support.queues import options

DJANGO_REDIS = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://nowhere.example"}
LOCMEM = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}


def found(*, deploy: bool = False) -> dict[str, CheckMessage]:
    """The messages of this app, by id without its prefix."""
    messages = [message for message in run_checks(include_deployment_checks=deploy) if message.id]
    # Rows of the tests' own models have a field that is warned of.
    ours = [each for each in messages if str(each.id).startswith("components.") and each.obj is not Ware]
    assert len({message.id for message in ours}) == len(ours)
    return {str(message.id).removeprefix("components."): message for message in ours}


def cache(options: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"CACHES": {"default": {**DJANGO_REDIS, "OPTIONS": options or {}}}}


BAD: dict[str, dict[str, Any]] = {
    "E001": {"COMPONENTS": {"PREFX": "a"}},
    "E002": {"COMPONENTS": {"CACHE": "redis"}},
    "E003": {"TASKS": {"default": {**settings.TASKS["default"], "OPTIONS": {"leese": 5}}}},
    "E006": {"COMPONENTS": {"PEOPLE": "components.people.Nobody"}},
    "W002": cache({"CONNECTION_POOL_KWARGS": {"retry_on_timeout": True}}),
    "W003": cache({"SOCKET_TIMEOUT": 1}),
    "W004": {"COMPONENTS": {"EMBEDDED": Path("var")}},
}


def test_a_project_that_is_set_up_well_hears_nothing() -> None:
    with override_settings(COMPONENTS={}, **cache()):
        assert found(deploy=True) == {}


@pytest.mark.parametrize("check", BAD)
def test_each_check_speaks_of_what_it_is_for_and_of_nothing_else(check: str) -> None:
    with override_settings(**{**cache(), "COMPONENTS": {}, **BAD[check]}):
        messages = found(deploy=True)

    assert list(messages) == [check]
    assert messages[check].is_serious() == check.startswith("E")


@pytest.mark.parametrize("path", ["Users", "nowhere.Users", "components.people.__doc__"])
@pytest.mark.parametrize("name", ["PEOPLE", "BOOKS", "API_AUTHENTICATION", "CHAT_CONSENT"])
def test_a_dotted_path_that_leads_nowhere_is_named(name: str, path: str) -> None:
    with override_settings(**{**cache(), "COMPONENTS": {name: path}}):
        [message] = found().values()

    assert message.msg.startswith(f'settings.COMPONENTS["{name}"]: ')
    assert message.id == "components.E006"


def test_every_check_is_tested() -> None:
    source = "".join(path.read_text() for path in Path(components.__file__).parent.rglob("*.py"))
    ids = set(re.findall(r"\"components\.([EW]\d{3})\"", source))
    elsewhere = {"W001", "E004", "E005"}  # below, and where mail and fences are tested
    elsewhere |= {"E007", "E008", "E009", "W005"}  # tests/db/test_row_checks.py

    assert ids == BAD.keys() | elsewhere


def test_a_name_that_is_nearly_right_gets_a_hint() -> None:
    with override_settings(COMPONENTS={"MAIL_QUEU": "mail"}):
        assert (
            found()["E001"].msg == "settings.COMPONENTS: 'mail_queu' is not known; did you mean 'mail_queue'?"
        )
    with options(max_crash=5):
        assert found()["E003"].msg == (
            "TASKS['default'][\"OPTIONS\"]: 'max_crash' is not known; did you mean 'max_crashes'?"
        )


def test_a_cache_that_is_not_of_django_redis_is_an_error() -> None:
    with override_settings(COMPONENTS={}, CACHES={"default": LOCMEM}):
        messages = found()

    assert list(messages) == ["E002"]
    assert "'default'" in messages["E002"].msg
    assert "django_redis.cache.RedisCache" in str(messages["E002"].hint)


def test_only_the_alias_that_is_named_matters() -> None:
    with override_settings(COMPONENTS={"CACHE": "redis"}, CACHES={"default": LOCMEM, "redis": DJANGO_REDIS}):
        assert found() == {}


@pytest.mark.parametrize("name", ["retry", "retry_on_error", "retry_on_timeout"])
def test_retries_of_the_client_are_warned_of(name: str) -> None:
    with override_settings(COMPONENTS={}, **cache({"CONNECTION_POOL_KWARGS": {name: object()}})):
        assert list(found()) == ["W002"]


@pytest.mark.parametrize(
    ("given", "is_short"),
    [
        ({"SOCKET_TIMEOUT": 1.9}, True),
        ({"SOCKET_TIMEOUT": 2}, False),
        ({"CONNECTION_POOL_KWARGS": {"socket_timeout": 1}}, True),
        ({"SOCKET_TIMEOUT": 1, "CONNECTION_POOL_KWARGS": {"socket_timeout": 10}}, False),
        ({"CONNECTION_POOL_KWARGS": {"socket_timeout": None}}, False),
    ],
)
def test_a_socket_timeout_that_is_too_short_for_waiting_is_warned_of(
    given: dict[str, Any], is_short: bool
) -> None:
    with override_settings(COMPONENTS={}, **cache(given)):
        assert ("W003" in found()) == is_short


def test_the_embedded_server_is_warned_of_in_production_only() -> None:
    with override_settings(COMPONENTS={"EMBEDDED": Path("var")}):
        assert "W004" not in found()
        assert "W004" in found(deploy=True)


def test_a_second_runworker_command_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, "channels"]):
        assert list(found()) == ["W001"]
    assert "W001" not in found()


def test_options_of_other_backends_are_their_own_affair() -> None:
    other = {**settings.TASKS["default"], "OPTIONS": {"leese": 5}}
    module = "django_tasks" if "django_tasks" in settings.INSTALLED_APPS else "django.tasks"
    other["BACKEND"] = f"{module}.backends.dummy.DummyBackend"
    with override_settings(COMPONENTS={}, TASKS={"default": other}, **cache()):
        assert found() == {}
