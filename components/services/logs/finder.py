"""The finder of log jobs, by name. People name jobs, so there are few."""

from __future__ import annotations

from typing import Any

from components.kit.cards import Link
from components.kit.figures import Ask
from components.kit.finders import FinderReading, Found, best
from components.kit.stored import text_of
from components.services.logs.jobs import DEFAULT_JOB
from components.services.logs.keys import index
from components.templatetags.control_room import legible


def find(text: str) -> FinderReading:
    """Find jobs."""
    [names] = yield [Ask(index(DEFAULT_JOB), _add_jobs)]
    return [Found(Link("job", legible(name), job=name)) for name in best(map(text_of, names), text)]


def _add_jobs(pipe: Any) -> None:
    pipe.smembers(index(DEFAULT_JOB))
