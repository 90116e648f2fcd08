"""The settings of the processes of the chaos test; tests/chaos/plan.py says why they are so."""

from __future__ import annotations

from tests.chaos import plan
from tests.commands.settings import *  # noqa: F403

INSTALLED_APPS.append("tests.chaos.recorder.Chaos")  # noqa: F405
TASKS["default"]["OPTIONS"] = plan.OPTIONS  # noqa: F405
CACHES["default"]["OPTIONS"] = {"SOCKET_TIMEOUT": plan.SOCKET_TIMEOUT}  # noqa: F405
