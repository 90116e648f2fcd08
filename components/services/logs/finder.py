"""The finder of log jobs, by name. People name jobs, so there are few."""

from __future__ import annotations

from components.kit.cards import Link
from components.kit.finders import FinderReading, Found, best
from components.kit.stored import text_of
from components.services.logs.figures import ask_jobs
from components.templatetags.control_room import legible


def find(text: str) -> FinderReading:
    """Find jobs."""
    [names] = yield [ask_jobs()]
    return [Found(Link("job", legible(name), job=name)) for name in best(map(text_of, names), text)]
