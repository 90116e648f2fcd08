"""A plugin for pytest that notes in $PLANTED_NOTES which tests have begun, ended and failed, as they run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Note only in the process that hears of all tests, not in each process of pytest-xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Notes(Path(os.environ["PLANTED_NOTES"])))


class _Notes:
    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._note("begun", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._note("failed", report.nodeid)
        elif report.when == "teardown":
            self._note("ended", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note("failed", report.nodeid)

    def _note(self, word: str, nodeid: str) -> None:
        with self._path.open("a") as notes:
            notes.write(f"{word} {nodeid}\n")
