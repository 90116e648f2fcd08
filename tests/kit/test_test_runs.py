"""In a test run the Redis of the settings is refused, and a private one is not. See also tests/test_live_redis.py."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from django.test.utils import _TestState
from redis import Redis

from components.exceptions import RedisNotPrivate, RedisUnavailable
from components.kit import test_runs
from components.kit.client import get_client
from components.kit.test_runs import is_test_run  # as it was before tests/conftest.py
from components.services.counters import buffer, count
from components.testing import redis_at


def in_a_test_run(**cache: Any) -> Any:
    return override_settings(
        COMPONENTS={**settings.COMPONENTS, "TEST_RUN": True},
        CACHES={"default": {**settings.CACHES["default"], **cache}},
    )


def test_a_test_run_is_what_django_has_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_runs, "_was_test_run", False)
    assert is_test_run()

    monkeypatch.delattr(_TestState, "saved_data")
    assert is_test_run(), "its last counts are sent after its end"

    monkeypatch.setattr(test_runs, "_was_test_run", False)
    assert not is_test_run()


def test_a_process_that_never_imported_djangos_test_tools_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_runs, "_was_test_run", False)
    monkeypatch.delitem(test_runs.sys.modules, "django.test.utils")

    assert not is_test_run()


@pytest.mark.parametrize(("recognised", "said", "refused"), [
    (True, None, True), (True, False, False), (False, None, False), (False, True, True),
])  # fmt: skip
def test_the_setting_comes_before_what_is_recognised(
    monkeypatch: pytest.MonkeyPatch, recognised: bool, said: bool | None, refused: bool
) -> None:
    monkeypatch.setattr(test_runs, "is_test_run", lambda: recognised)
    with override_settings(COMPONENTS={**settings.COMPONENTS, "TEST_RUN": said}):
        assert test_runs.is_refused() is refused


def test_what_a_test_asked_for_is_refused_without_showing_a_password() -> None:
    with in_a_test_run(LOCATION="redis://:secret@localhost:6379/0"), pytest.raises(RedisNotPrivate) as caught:
        get_client()

    assert "CACHES['default']" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not isinstance(caught.value, RedisUnavailable), "a page would show it as an outage"


def test_a_private_server_is_allowed_until_it_is_given_back(redis: Redis) -> None:
    url = settings.CACHES["default"]["LOCATION"]
    with in_a_test_run():
        get_client().set("sword", "sold")
        with redis_at("unix:///nowhere/else"):
            get_client()
        with in_a_test_run(LOCATION="redis://localhost:6379/0"), pytest.raises(RedisNotPrivate):
            get_client()
        assert get_client().get("sword") == b"sold"

    assert test_runs._private == [url]


def test_counts_of_a_test_without_a_redis_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    with in_a_test_run():
        count("swords")
        buffer.finish()

        assert not buffer._buffer.counts
    assert not caplog.messages
