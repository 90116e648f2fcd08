"""Settings: typed, read when used, anew after they changed, and wrong ones named."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings

from components.conf import Conf, QueueOptions, conf, functions, problems, queue_options
from tests.support.queues import options


def test_settings_are_read_anew_when_they_change() -> None:
    before = conf()
    assert conf() is before
    with override_settings(COMPONENTS={"PREFIX": "a"}):
        assert conf().prefix == "a"
        with override_settings(COMPONENTS={"PREFIX": "b"}):
            assert conf().prefix == "b"
        assert conf().prefix == "a"
    assert conf() == before
    with options(lease=7):
        assert queue_options("default").lease == 7
        with options(lease=8):
            assert queue_options("default").lease == 8
    with override_settings(COMPONENTS={"PREFIX": 5}), pytest.raises(ImproperlyConfigured, match="COMPONENTS"):
        conf()
    with options(lease="long"), pytest.raises(ImproperlyConfigured, match=r"TASKS\['default'\]"):
        queue_options("default")


def test_functions_are_found_anew_when_the_settings_change() -> None:
    for path, function in (("components.conf.conf", conf), ("components.conf.queue_options", queue_options)):
        with override_settings(COMPONENTS={"RUN_MIDDLEWARE": [path]}):
            assert functions("run_middleware") == (function,)
    with (
        override_settings(COMPONENTS={"RUN_MIDDLEWARE": ["components.conf.__doc__"]}),
        pytest.raises(ImproperlyConfigured, match="cannot be called"),
    ):
        functions("run_middleware")


def test_each_alias_has_options_of_its_own() -> None:
    backend = {"BACKEND": "components.tasks.RedisBackend"}
    with override_settings(TASKS={"default": backend, "mail": {**backend, "OPTIONS": {"max_body": 9}}}):
        assert queue_options("mail").max_body == 9
        assert queue_options("default") == QueueOptions()


def test_an_alias_that_is_not_there_is_named_with_those_that_are() -> None:
    with override_settings(TASKS={}), pytest.raises(ImproperlyConfigured, match="'mail'; it has: none"):
        queue_options("mail")
    with pytest.raises(ImproperlyConfigured, match="'mail'; it has: 'default'"):
        queue_options("mail")


@pytest.mark.parametrize(
    ("cls", "given", "problem"),
    [
        (Conf, {"prefx": "a"}, "'prefx' is not known; did you mean 'prefix'?"),
        (Conf, {"zzz": "a"}, "'zzz' is not known; known are: prefix, cache, embedded, "),
        (Conf, {"prefix": 5}, "'prefix' is 5 (int); it must be str."),
        (Conf, {"log_kernel": "c"}, "'log_kernel' is 'c'; it must be one of auto, numba, naive."),
        (Conf, {"prefix": ""}, "'prefix' is ''; it must be a word without braces or blanks."),
        (Conf, {"prefix": "a{b"}, "'prefix' is 'a{b'"),
        (Conf, {"embedded": "var/redis"}, "'embedded' is 'var/redis' (str); it must be Path or NoneType."),
        (Conf, {"max_waiters": -1}, "'max_waiters' is -1; it must be a finite number, at least 0."),
        (Conf, {"api_authentication": 5}, "'api_authentication' is 5 (int); it must be str or NoneType."),
        (QueueOptions, {"leese": 5}, "'leese' is not known; did you mean 'lease'?"),
        (QueueOptions, {"lease": True}, "'lease' is True (bool); it must be float or int."),
        (QueueOptions, {"due_first": 1}, "'due_first' is 1 (int); it must be bool."),
        (QueueOptions, {"max_crashes": 2.5}, "'max_crashes' is 2.5 (float); it must be int."),
        (QueueOptions, {"lease": 0.5}, "'lease' is 0.5; it must be a finite number, at least 1."),
        (QueueOptions, {"lease": float("nan")}, "'lease' is nan"),
        (QueueOptions, {"result_ttl": 59}, "'result_ttl' is 59; it must be a finite number, at least 60."),
        (QueueOptions, {"dead_limit": 0}, "'dead_limit' is 0"),
        (QueueOptions, {"max_backoff": float("inf")}, "'max_backoff' is inf"),
        (QueueOptions, {"timeout": 0}, "'timeout' is 0; it must be a finite number, at least 0.001."),
        (QueueOptions, {"timeout": "1"}, "'timeout' is '1' (str); it must be float or NoneType or int."),
        (Conf, {"counter_samples": 10_001}, "'counter_samples' is 10001"),
        (Conf, {"test_run": "yes"}, "'test_run' is 'yes' (str); it must be bool or NoneType."),
        (Conf, {"run_middleware": "a.b"}, "'run_middleware' is 'a.b'; it must be a list of dotted paths of"),
        (Conf, {"on_wait": [len]}, "'on_wait' is [<built-in function len>]; it must be a list of dotted"),
    ],
)
def test_a_wrong_setting_is_named(cls: type[Conf], given: dict[str, Any], problem: str) -> None:
    [found] = problems(cls, given)

    assert found.startswith(problem)


@pytest.mark.parametrize(
    "value", [[], (), 60, "60", [0], [-1], [1.0], [True], ["60"], [60, None], [400 * 86_400], {60}]
)
def test_precisions_of_counters_are_a_list_of_seconds(value: Any) -> None:
    [problem] = problems(Conf, {"counter_precisions": value})

    assert "it must be a list of whole numbers of seconds, 1 to 31,622,400" in problem
