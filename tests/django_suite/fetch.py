"""
Fetch Django's own tests of django.tasks into a folder, for DJANGO_TESTS of test_tasks.py:

    DJANGO_TESTS=$(python -m tests.django_suite.fetch FOLDER)

Only tests/tasks is unpacked. The tests are those of exactly the Django that is installed. Django 5.2 has none, and
the backport's distribution has no tests: there the backport has to stand those of Django 6.0, which it is the
backport of.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from tests.support.distributions import fetch

#: The line of Django whose tests the backport has to stand.
BACKPORTED = "6.0"


def wanted() -> str:
    """The requirement that names the distribution with the tests."""
    installed = version("Django")
    return f"Django=={BACKPORTED}.*" if installed.startswith("5.2") else f"Django=={installed}"


if __name__ == "__main__":
    folder = fetch(wanted(), Path(sys.argv[1]), lambda path: path.parts[:-1] == ("tests", "tasks"))
    print(folder / "tests")  # noqa: T201
