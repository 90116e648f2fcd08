"""Settings: read when used, anew after they changed, and wrong ones named, in use and by the system checks."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.core.checks.registry import registry
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings

import components
from components.conf import FUNCTIONS, Conf, QueueOptions, conf, functions, problems, queue_options
from components.doctor.missing import missing_settings
from components.services.queues.backend import RedisBackend
from tests.db.models import Ware
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
        (Conf, {"max_waiters": -1}, "'max_waiters' is -1; it must be a finite number, at least 0."),
        (QueueOptions, {"lease": True}, "'lease' is True (bool); it must be float or int."),
        (QueueOptions, {"due_first": 1}, "'due_first' is 1 (int); it must be bool."),
        (QueueOptions, {"lease": 0.5}, "'lease' is 0.5; it must be a finite number, at least 1."),
        (QueueOptions, {"lease": float("nan")}, "'lease' is nan"),
        (QueueOptions, {"max_backoff": float("inf")}, "'max_backoff' is inf"),
        (QueueOptions, {"timeout": 0}, "'timeout' is 0; it must be a finite number, at least 0.001."),
        (Conf, {"counter_samples": 10_001}, "'counter_samples' is 10001"),
        (Conf, {"run_middleware": "a.b"}, "'run_middleware' is 'a.b'; it must be a list of dotted paths."),
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


DJANGO_REDIS = {
    "BACKEND": "django_redis.cache.RedisCache",
    "LOCATION": "redis://nowhere.example",
    "OPTIONS": {"SERIALIZER": "django_redis.serializers.json.JSONSerializer"},
}


def found(*, deploy: bool = False) -> dict[str, CheckMessage]:
    """The messages of this app, by id without its prefix."""
    quick = ("components.", "django.tasks.", "django_tasks.")  # others look at all models and pages
    checks = [each for each in registry.get_checks(deploy) if each.__module__.startswith(quick)]
    messages = [message for check in checks for message in check(app_configs=None)]
    # Rows of the tests' own models have a field that is warned of.
    ours = [each for each in messages if str(each.id).startswith("components.") and each.obj is not Ware]
    assert len({message.id for message in ours}) == len(ours)
    return {str(message.id).removeprefix("components."): message for message in ours}


def cache(
    options: dict[str, Any] | None = None, location: str = "redis://nowhere.example/1"
) -> dict[str, Any]:
    """The README's caches: one for the site, and one for this app in another database."""
    ours = {**DJANGO_REDIS["OPTIONS"], **(options or {})}
    return {
        "CACHES": {
            "default": {**DJANGO_REDIS, "LOCATION": location},
            "components": {**DJANGO_REDIS, "OPTIONS": ours},
        },
        "COMPONENTS": {"CACHE": "components"},
    }


BAD: dict[str, dict[str, Any]] = {
    "E001": {"COMPONENTS": {"CACHE": "components", "PREFX": "a"}},
    "E002": {"COMPONENTS": {"CACHE": "redis"}},
    "E003": {"TASKS": {"default": {**settings.TASKS["default"], "OPTIONS": {"leese": 5, "on_commit": True}}}},
    "I015": {"TASKS": {"default": {**settings.TASKS["default"], "OPTIONS": {}}}},
    "E006": {"COMPONENTS": {"CACHE": "components", "PEOPLE": "components.people.Nobody"}},
    "E010": cache({"CONNECTION_POOL_KWARGS": {"decode_responses": True}}),
    "W002": cache({"CONNECTION_POOL_KWARGS": {"retry_on_timeout": True}}),
    "W003": cache({"SOCKET_TIMEOUT": 1}),
    "W016": cache({"CLOSE_CONNECTION": True}),
    "W004": {"COMPONENTS": {"CACHE": "components", "EMBEDDED": Path("var")}},
    "W006": cache(location="redis://nowhere.example:6379/0"),
    "W009": {"MIDDLEWARE": ["django.middleware.common.CommonMiddleware"]},
    "W007": cache({"SERIALIZER": "django_redis.serializers.pickle.PickleSerializer"}),
}


def test_a_project_that_is_set_up_well_hears_nothing() -> None:
    with override_settings(**cache()):
        assert found(deploy=True) == {}
    with override_settings(MIDDLEWARE=[], **cache()):  # a site that serves no pages
        assert found() == {}
    with override_settings(COMPONENTS={"EMBEDDED": Path("var")}):
        assert "W004" not in found(), "only in production"


@pytest.mark.parametrize("check", BAD)
def test_each_check_speaks_of_what_it_is_for_and_of_nothing_else(check: str) -> None:
    with override_settings(**{**cache(), **BAD[check]}):
        messages = found(deploy=True)

    assert list(messages) == [check]
    assert messages[check].is_serious() == check.startswith("E")


@pytest.mark.parametrize(
    ("engine", "name", "mode", "ids"),
    [
        ("django.db.backends.sqlite3", Path("site.db"), None, ["W015"]),
        ("django.db.backends.sqlite3", "memory/site.db", "deferred", ["W015"]),
        ("django.db.backends.sqlite3", "site.db", "exclusive", []),
        ("django.db.backends.sqlite3", "file:a?mode=memory", None, []),
        ("django.db.backends.postgresql", "site", None, []),
    ],
)
def test_sqlite_that_locks_late_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, engine: str, name: str | Path, mode: str | None, ids: list[str]
) -> None:
    entry = {"ENGINE": engine, "NAME": name, "OPTIONS": {"transaction_mode": mode} if mode else {}}
    monkeypatch.setitem(settings.DATABASES, "an alias of its own", entry)
    with override_settings(**cache()):
        assert list(found()) == ids


@pytest.mark.parametrize("path", ["Users", "nowhere.Users", "components.people.__doc__"])
@pytest.mark.parametrize(
    "name", ["PEOPLE", "BOOKS", "API_AUTHENTICATION", "CHAT_CONSENT", *map(str.upper, FUNCTIONS)]
)
def test_a_dotted_path_that_leads_nowhere_is_named(name: str, path: str) -> None:
    given = ["components.conf.functions", path] if name.lower() in FUNCTIONS else path
    with override_settings(**{**cache(), "COMPONENTS": {"CACHE": "components", name: given}}):
        [message] = found().values()

    assert message.msg.startswith(f'settings.COMPONENTS["{name}"]: ')
    assert message.id == "components.E006"


def test_every_check_and_every_finding_is_documented() -> None:
    package = Path(components.__file__).parent
    source = "".join(path.read_text() for path in package.rglob("*.py"))
    rows = re.findall(r"^\|(.*?)\|", (package.parent / "docs" / "doctor.md").read_text(), re.MULTILINE)

    assert set(re.findall(r"\"(?:components\.)?([EWI]\d{3})\"", source)) <= set(
        re.findall(r"[EWI]\d{3}", "".join(rows))
    )


NOWHERE = "redis://nowhere.example"
DJANGOS = "django.core.cache.backends.redis.RedisCache"
DB_1 = {**DJANGO_REDIS["OPTIONS"], "CONNECTION_POOL_KWARGS": {"db": 1}}
CLUSTER = {**DJANGO_REDIS["OPTIONS"], "CLIENT_CLASS": "components.cache.ClusterClient"}
SENTINELS = {**DJANGO_REDIS["OPTIONS"], "SENTINELS": [("a.example", 1), ("b.example", 2)]}


@pytest.mark.parametrize(
    ("theirs", "ours", "is_one"),
    [
        ({"LOCATION": f"{NOWHERE}/0"}, {"LOCATION": NOWHERE}, True),
        ({"LOCATION": f"{NOWHERE}:6379/1"}, {"LOCATION": "redis://joe:secret@nowhere.example?db=1"}, True),
        ({"LOCATION": f"{NOWHERE}/1"}, {"LOCATION": f"{NOWHERE}/2"}, False),
        ({"LOCATION": "redis://127.0.0.1/1"}, {"LOCATION": "redis://localhost:6379/1"}, True),
        ({"LOCATION": "unix:///run/redis.sock"}, {"LOCATION": "unix:///run//redis.sock?db=0"}, True),
        ({"LOCATION": "unix:///run/redis.sock"}, {"LOCATION": "unix:///run/redis.sock?db=1"}, False),
        ({"LOCATION": NOWHERE, "OPTIONS": DB_1}, {"LOCATION": NOWHERE}, False),
        ({"LOCATION": [NOWHERE]}, {"LOCATION": NOWHERE}, True),
        ({"BACKEND": DJANGOS, "LOCATION": NOWHERE}, {"LOCATION": NOWHERE}, True),
        ({"LOCATION": "redis://shop/0", "OPTIONS": SENTINELS}, {"LOCATION": "redis://shop/0"}, False),
        (
            {"LOCATION": "redis://shop/0", "OPTIONS": SENTINELS},
            {"LOCATION": "redis://shop/0", "OPTIONS": SENTINELS},
            True,
        ),
        ({"LOCATION": f"{NOWHERE}/1"}, {"LOCATION": NOWHERE, "OPTIONS": CLUSTER}, False),
        ({"LOCATION": NOWHERE}, {"LOCATION": NOWHERE, "OPTIONS": CLUSTER}, True),
        ({"LOCATION": NOWHERE, "OPTIONS": CLUSTER}, {"LOCATION": NOWHERE, "OPTIONS": CLUSTER}, False),
    ],
)
def test_a_cache_whose_clear_would_empty_our_database_is_warned_of_whatever_its_alias(
    theirs: dict[str, Any], ours: dict[str, Any], is_one: bool
) -> None:
    caches = {"pages": {**DJANGO_REDIS, **theirs}, "queues": {**DJANGO_REDIS, **ours}}
    with override_settings(CACHES=caches, COMPONENTS={"CACHE": "queues"}):
        messages = found()

    assert ("W006" in messages) == is_one
    if is_one:
        assert "settings.CACHES['pages'] uses the server and the database" in messages["W006"].msg


def test_the_default_cache_as_the_cache_of_this_app_is_warned_of() -> None:
    with override_settings(CACHES={"default": DJANGO_REDIS}, COMPONENTS={}):
        assert "settings.CACHES['default'] is the cache in which" in found()["W006"].msg

    spared = {**DJANGO_REDIS, "OPTIONS": {**CLUSTER, "CLIENT_CLASS": "components.cache.Client"}}
    with override_settings(CACHES={"default": spared}, COMPONENTS={}):
        assert found() == {}


@pytest.mark.parametrize(
    ("given", "number"),
    [
        ({"LOCATION": NOWHERE}, "1"),
        ({"LOCATION": f"{NOWHERE}/1"}, "2"),
        ({"LOCATION": NOWHERE, "OPTIONS": CLUSTER}, None),
    ],
)
def test_the_settings_that_are_missing_have_a_database_beside_that_of_the_default_cache(
    given: dict[str, Any], number: str | None
) -> None:
    with override_settings(CACHES={"default": {**DJANGO_REDIS, **given}}, COMPONENTS={}):
        told = missing_settings()
        made: dict[str, Any] = {"CACHES": {**settings.CACHES}, "COMPONENTS": {}}
        exec(told, made)

    assert made["COMPONENTS"] == ({"CACHE": "components"} if number else {})
    if number:
        assert made["CACHES"]["components"]["LOCATION"] == f"{NOWHERE}/{number}"


@pytest.mark.parametrize(
    ("given", "is_pickled"),
    [
        ({"BACKEND": "django_redis.cache.RedisCache"}, True),
        ({"BACKEND": DJANGOS}, True),
        ({"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}, False),
        (DJANGO_REDIS, False),
    ],
)
def test_a_cache_that_unpickles_what_it_reads_is_warned_of(given: dict[str, Any], is_pickled: bool) -> None:
    caches = {**cache()["CACHES"], "default": {**given, "LOCATION": "redis://other.example"}}
    with override_settings(CACHES=caches, COMPONENTS={"CACHE": "components"}):
        messages = found()

    assert ("W007" in messages) == is_pickled


@pytest.mark.parametrize(
    ("given", "is_short"),
    [
        ({"SOCKET_TIMEOUT": 1.9}, True),
        ({"SOCKET_TIMEOUT": 2}, False),
        ({"SOCKET_TIMEOUT": 1, "CONNECTION_POOL_KWARGS": {"socket_timeout": 10}}, False),
        ({"CONNECTION_POOL_KWARGS": {"socket_timeout": None}}, False),
        ({"LOCATION": f"{NOWHERE}?socket_timeout=1"}, True),
    ],
)
def test_a_socket_timeout_that_is_too_short_for_waiting_is_warned_of(
    given: dict[str, Any], is_short: bool
) -> None:
    given = given if "LOCATION" in given else {"OPTIONS": {**DJANGO_REDIS["OPTIONS"], **given}}
    with override_settings(
        CACHES={**cache()["CACHES"], "components": {**DJANGO_REDIS, **given}},
        COMPONENTS={"CACHE": "components"},
    ):
        assert ("W003" in found()) == is_short


def test_a_second_runworker_command_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, "channels"], **cache()):
        assert list(found()) == ["W001"]
    assert "W001" not in found()


def test_a_missing_backport_is_warned_of_on_the_django_that_needs_it() -> None:
    needs_it = "django_tasks" in settings.INSTALLED_APPS
    others = [app for app in settings.INSTALLED_APPS if app != "django_tasks"]
    with override_settings(INSTALLED_APPS=others, **cache()):
        assert ("W011" in found()) == needs_it


def test_a_backend_whose_app_is_not_installed_is_an_error() -> None:
    backend = RedisBackend("default", {})
    assert backend.check() == []
    with override_settings(INSTALLED_APPS=["django.contrib.contenttypes"]):
        [message] = backend.check()

    assert message.id == "components.E012"
    assert message.hint == 'Add "components" to INSTALLED_APPS.'


def test_a_cache_client_warns_if_the_app_is_not_installed(tmp_path: Path) -> None:
    caches = cache({"CLIENT_CLASS": "components.cache.Client"})["CACHES"]
    (tmp_path / "without.py").write_text(f"SECRET_KEY = 'x'\nINSTALLED_APPS = []\nCACHES = {caches!r}\n")
    environment = {
        "PYTHONPATH": f"{tmp_path}:{Path(components.__file__).parent.parent}",
        "DJANGO_SETTINGS_MODULE": "without",
    }

    done = subprocess.run(
        [sys.executable, "-m", "django", "check"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )

    assert '"components" is not in INSTALLED_APPS' in done.stderr


def test_a_package_of_the_same_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package" / "components").mkdir(parents=True)
    (tmp_path / "package" / "components" / "__init__.py").touch()
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "components.py").touch()
    (tmp_path / "mere folder" / "components").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "package")
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path / "module"), str(tmp_path / "mere folder")])

    told = [message for message in run_checks() if message.id == "components.W008"]

    assert [message.msg.partition(" is called components")[0] for message in told] == [
        str(tmp_path / "package" / "components"),
        str(tmp_path / "module" / "components.py"),
    ]


def test_the_distribution_that_has_the_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "components-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: components\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    for package in ("components", "other"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "module.py").touch()

    (info / "RECORD").write_text("other/module.py,,\n")
    assert "E011" not in found()
    (info / "RECORD").write_text("components/module.py,,\n")
    assert "pip uninstall components" in str(found()["E011"].hint)
