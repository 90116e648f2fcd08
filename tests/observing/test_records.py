"""Records of the log: the task in which they are written, and their lines of JSON."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.observing.records import JsonFormatter
from components.services.queues import TaskQueue
from tests.fixtures.worker import MakeWorker, push

PAGE = Path(__file__).parents[2] / "docs" / "observing.md"


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """What is logged with the LOGGING of the documentation; filled in when the test has called read()."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    [example] = re.findall(r"^LOGGING = \{.*?^\}", PAGE.read_text("utf-8"), re.M | re.S)
    scope: dict[str, Any] = {}
    exec(example, scope)
    output = io.StringIO()
    logging.config.dictConfig(scope["LOGGING"])
    [handler] = [each for each in root.handlers if each not in before]
    handler.setStream(output)

    class Lines(list[dict[str, Any]]):
        def read(self) -> list[dict[str, Any]]:
            return [json.loads(line) for line in output.getvalue().splitlines()]

    yield Lines()
    root.handlers[:], root.level = before, level


@pytest.mark.parametrize("name", ["tests.observing.jobs.tell", "tests.observing.jobs.atell"])
def test_the_records_of_a_task_name_it(redis: Redis, make_worker: MakeWorker, lines: Any, name: str) -> None:
    push(name)
    [task_id] = [info.id for info in TaskQueue().tasks("default", "ready")]

    logging.getLogger("site").info("before")
    make_worker(burst=True).run()

    told = {line["message"]: line for line in lines.read()}
    assert (told["before"]["task"], told["before"]["task_id"]) == ("", "")
    assert (told["at work"]["task"], told["at work"]["task_id"]) == (name, task_id)
    assert told["at work"]["item"] == 7
    [ended] = [line for line in told.values() if line["logger"] == "components.done"]
    assert (ended["task"], ended["task_id"], ended["level"]) == (name, task_id, "INFO")


def test_a_line_is_json_whatever_is_in_the_record() -> None:
    try:
        raise ValueError("line\nfeed")
    except ValueError as error:
        info = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("site", logging.ERROR, "file", 1, "%s\n%s", ("ä", object), info)
    record.item = {1, 2}

    line = JsonFormatter().format(record)

    assert "\n" not in line
    read = json.loads(line)
    assert read["message"] == "ä\n<class 'object'>"
    assert read["item"] == "{1, 2}"
    assert read["exception"].endswith("ValueError: line\nfeed")
    assert read["time"].endswith("+00:00")
    assert not {"args", "msg", "exc_info"} & read.keys()
