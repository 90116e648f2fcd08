"""Declaring periodic tasks: what @periodic takes, what it refuses, and how declarations are found."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import AppConfig, apps
from django.test.utils import override_settings

from components.exceptions import NotSerializable
from components.services.queues import cron, every, periodic
from components.services.queues import periodic_tasks as module
from components.services.queues.periodic_tasks import declared
from tests import tasks
from tests.queues.worker import jobs

TASKS = {
    "default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []},
    "other": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []},
}
App = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    declared()  # the tasks of installed apps are imported now, so none is declared during a test
    monkeypatch.setattr(module, "_declared", {})


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[App]:
    """Make an installed app with that module "tasks"; no declarations were looked for yet."""
    module._import_tasks.cache_clear()
    monkeypatch.syspath_prepend(tmp_path)
    configs = list(apps.get_app_configs())

    def make(name: str, source: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "tasks.py").write_text(source)
        configs.append(AppConfig.create(name))
        monkeypatch.setattr(apps, "get_app_configs", lambda: configs)

    yield make
    module._import_tasks.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("broken", "whole")]:
        del sys.modules[name]


def names(alias: str = "default") -> list[str]:
    return [entry.name for entry in declared(alias)]


# --- What is declared ------------------------------------------------------------------------------


def test_a_task_may_have_several_schedules_and_arguments_and_stays_what_it_is() -> None:
    night = cron("0 3 * * *", tz="Europe/Berlin")
    assert periodic(every(minutes=5))(tasks.echo) is tasks.echo
    [entry] = declared()
    assert (entry.task, entry.schedule, entry.missed) == (tasks.echo, every(minutes=5), "once")
    periodic(every(seconds=300), missed="once")(tasks.echo)  # the same again
    periodic(night)(tasks.echo)
    periodic(night, args=["a"])(tasks.echo)
    periodic(night, args=["b"])(tasks.echo)
    periodic(night, kwargs={"value": "b"})(tasks.echo)

    assert len(set(names())) == 5
    assert names()[0] == "tests.tasks.echo 0 3 * * * (Europe/Berlin)"
    assert names()[-1] == "tests.tasks.echo every 5 minutes"
    with pytest.raises(ValueError, match="missed="):
        periodic(every(minutes=5), missed="all")(tasks.echo)


def test_arguments_have_the_same_name_in_every_process() -> None:
    periodic(every(minutes=5), kwargs={"b": (1, 2), "a": None})(jobs.parameters)

    assert names() == ["tests.queues.worker.jobs.parameters every 5 minutes #e7aa373e"]
    [entry] = declared()
    assert entry.kwargs == {"b": [1, 2], "a": None}


@override_settings(TASKS=TASKS)
def test_a_backend_has_its_own_tasks_only() -> None:
    periodic(every(minutes=5))(tasks.attempt)  # needs no argument for its context
    periodic(every(minutes=5))(tasks.aecho.using(backend="other"))

    assert names() == ["tests.tasks.attempt every 5 minutes"]
    assert names("other") == ["tests.tasks.aecho every 5 minutes"]
    assert names("third") == []


# --- What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "given", "task", "error", "said"),
    [
        (every(minutes=5), {}, tasks.not_a_task, TypeError, "not_a_task"),
        (every(minutes=5), {}, tasks.aecho.func, TypeError, "aecho"),
        (tasks.echo, {}, tasks.echo, TypeError, "schedule"),
        ("0 3 * * *", {}, tasks.echo, TypeError, "schedule"),
        (every, {}, tasks.echo, TypeError, "schedule"),
        (every(minutes=5), {"missed": "twice"}, tasks.echo, ValueError, "once, skip, all"),
        (every(minutes=5), {"args": "abc"}, tasks.echo, TypeError, "a list and a dict"),
        (every(minutes=5), {"args": {1}}, tasks.echo, TypeError, "a list and a dict"),
        (every(minutes=5), {"kwargs": ["a"]}, tasks.echo, TypeError, "a list and a dict"),
        (every(minutes=5), {"args": [object()]}, tasks.echo, NotSerializable, "object"),
        (every(minutes=5), {}, tasks.note, TypeError, r"cannot call tests\.tasks\.note"),
        (every(minutes=5), {"args": [1, 2]}, tasks.note, TypeError, r"cannot call tests\.tasks\.note"),
        (
            every(minutes=5),
            {"kwargs": {"other": 1}},
            tasks.note,
            TypeError,
            r"cannot call tests\.tasks\.note",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    schedule: Any, given: dict[str, Any], task: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        periodic(schedule, **given)(task)

    assert declared() == []


# --- How they are found ----------------------------------------------------------------------------

WHOLE = """
from components.kit.compat import task
from components.services.queues import every, periodic

@periodic(every(minutes=5))
@task
def sweep():
    pass
"""


def test_an_app_whose_tasks_cannot_be_imported_is_named_once_and_stops_no_other(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    app("broken", "raise RuntimeError('no such thing')")
    app("whole", WHOLE)

    with caplog.at_level(logging.ERROR, "components.services.queues.periodic_tasks"):
        found = [names(), names()]

    assert found == [["whole.tasks.sweep every 5 minutes"]] * 2
    [record] = caplog.records
    assert "broken.tasks" in record.message
    assert record.exc_info is not None
