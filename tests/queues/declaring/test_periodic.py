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


def test_a_task_is_declared_and_stays_what_it_is() -> None:
    assert periodic(every(minutes=5))(tasks.echo) is tasks.echo

    [entry] = declared()
    assert (entry.task, entry.schedule, entry.missed) == (tasks.echo, every(minutes=5), "once")
    assert entry.name == "tests.tasks.echo every 5 minutes"


def test_a_task_may_have_several_schedules_and_arguments() -> None:
    night = cron("0 3 * * *", tz="Europe/Berlin")
    periodic(every(minutes=5))(tasks.echo)
    periodic(night)(tasks.echo)
    periodic(night, args=["a"])(tasks.echo)
    periodic(night, args=["b"])(tasks.echo)
    periodic(night, kwargs={"value": "b"})(tasks.echo)

    assert len(set(names())) == 5
    assert names()[0] == "tests.tasks.echo 0 3 * * * (Europe/Berlin)"


def test_arguments_have_the_same_name_in_every_process() -> None:
    periodic(every(minutes=5), kwargs={"b": (1, 2), "a": None})(jobs.parameters)

    assert names() == ["tests.queues.worker.jobs.parameters every 5 minutes #e7aa373e"]
    [entry] = declared()
    assert entry.kwargs == {"b": [1, 2], "a": None}


def test_identical_declarations_become_one() -> None:
    periodic(every(minutes=5))(tasks.echo)
    periodic(every(seconds=300), missed="once")(tasks.echo)

    assert len(declared()) == 1


def test_one_schedule_of_a_task_cannot_have_two_policies() -> None:
    periodic(every(minutes=5))(tasks.echo)

    with pytest.raises(ValueError, match="missed='once' and with 'all'; choose one"):
        periodic(every(minutes=5), missed="all")(tasks.echo)


@override_settings(TASKS=TASKS)
def test_a_backend_has_its_own_tasks_only() -> None:
    periodic(every(minutes=5))(tasks.echo)
    periodic(every(minutes=5))(tasks.aecho.using(backend="other"))

    assert names() == ["tests.tasks.echo every 5 minutes"]
    assert names("other") == ["tests.tasks.aecho every 5 minutes"]
    assert names("third") == []


def test_a_task_that_takes_its_context_needs_no_argument_for_it() -> None:
    periodic(every(minutes=5))(tasks.attempt)

    assert names() == ["tests.tasks.attempt every 5 minutes"]


# --- What is refused -------------------------------------------------------------------------------


def test_a_function_is_no_task() -> None:
    with pytest.raises(TypeError, match=r"put on not_a_task, which is not a task\. Put it above @task"):
        periodic(every(minutes=5))(tasks.not_a_task)  # type: ignore[type-var]


def test_a_coroutine_function_is_no_task() -> None:
    with pytest.raises(TypeError, match="which is not a task"):
        periodic(every(minutes=5))(tasks.aecho.func)


@pytest.mark.parametrize("schedule", [tasks.echo, "0 3 * * *", 300, every])
def test_an_invalid_schedule_is_refused(schedule: Any) -> None:
    with pytest.raises(TypeError, match="it needs a schedule"):
        periodic(schedule)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="missed='twice'; it must be one of once, skip, all"):
        periodic(every(minutes=5), missed="twice")  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"args": "abc"}, {"args": {1}}, {"kwargs": ["a"]}])
def test_arguments_are_a_list_and_a_dict(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="must be a list and a dict"):
        periodic(every(minutes=5), **given)


def test_arguments_that_are_not_json_are_refused_at_once() -> None:
    with pytest.raises(NotSerializable):
        periodic(every(minutes=5), args=[object()])(tasks.echo)

    assert declared() == []


@pytest.mark.parametrize("given", [{}, {"args": [1, 2]}, {"kwargs": {"other": 1}}])
def test_arguments_that_the_function_does_not_take_are_refused_at_once(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"cannot call tests\.tasks\.note with .*: .*argument"):
        periodic(every(minutes=5), **given)(tasks.note)


# --- How they are found ----------------------------------------------------------------------------

WHOLE = """
from components.kit.compat import task
from components.services.queues import every, periodic

@periodic(every(minutes=5))
@task
def sweep():
    pass
"""


def test_the_tasks_of_all_apps_are_found(app: App) -> None:
    app("whole", WHOLE)

    assert names() == ["whole.tasks.sweep every 5 minutes"]


def test_an_app_whose_tasks_cannot_be_imported_is_named_once_and_stops_no_other(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    app("broken", "raise RuntimeError('no such thing')")
    app("whole", WHOLE)

    with caplog.at_level(logging.ERROR, "components.services.queues.periodic_tasks"):
        found = [names(), names()]

    assert found == [["whole.tasks.sweep every 5 minutes"]] * 2
    [record] = caplog.records
    assert "broken.tasks cannot be imported" in record.message
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "no such thing"
