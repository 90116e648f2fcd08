"""The settings of the processes that copy and count logs."""

from __future__ import annotations

from tests.chaos.visits import plan
from tests.commands.settings import *  # noqa: F403

COMPONENTS["LOG_KERNEL"] = plan.KERNEL  # noqa: F405
CACHES["default"]["OPTIONS"] = {"SOCKET_TIMEOUT": plan.SOCKET_TIMEOUT}  # noqa: F405
