"""The settings of the processes that chat."""

from __future__ import annotations

from tests.chaos.chats import plan
from tests.commands.settings import *  # noqa: F403

CACHES["default"]["OPTIONS"] = {"SOCKET_TIMEOUT": plan.SOCKET_TIMEOUT}  # noqa: F405
