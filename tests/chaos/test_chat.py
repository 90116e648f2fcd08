"""
50 persons in 20 chats send each other 100,000 messages, while those who send and read are killed and stopped, replies
are lost, people come and go, and Redis is killed; then what all of them have noted is read.

The plan, and how to run it smaller or longer, is in chats/plan.py; what is promised, in chats/reading.py.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import pytest

from components.embedded import EmbeddedServer
from components.services.chat import Chat
from components.testing import redis_at
from tests.chaos.chats import plan
from tests.chaos.chats.monkey import Monkey
from tests.chaos.chats.troupe import Troupe
from tests.chaos.chats.verdict import Verdict
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

_PATIENCE = 120 + plan.MESSAGES / 250  # seconds for what takes a half


def test_members_see_exactly_the_messages_of_their_time_whatever_happens(
    server: EmbeddedServer, tmp_path: Path, record_property: Any
) -> None:
    began, cpu = time.monotonic(), processor_seconds()
    folder = tmp_path / "notes"
    folder.mkdir()
    with redis_at(server.url), LossyProxy(server) as to_senders, LossyProxy(server) as to_readers:
        for chat in plan.CHATS:
            Chat.create(plan.OWNER, members=plan.first_members(chat), id=chat, settings=plan.settings(chat))
        with Troupe(server.url, to_senders.url, to_readers.url, folder) as troupe:
            monkey = Monkey(server, troupe, to_senders, to_readers)
            monkey.run(within=_PATIENCE)
            monkey.calm()
            sent = time.monotonic()
            (folder / "over").touch()
            assert eventually(lambda: troupe.look() or troupe.is_done("readers"), within=_PATIENCE)
        read = time.monotonic()

        verdict = Verdict(folder, troupe, monkey)
        verdict.check()
    verdict.figures += [
        ("replies lost", f"{to_senders.lost + to_readers.lost}"),
        (
            "seconds: to send, to read the rest, to judge",
            f"{sent - began:.1f}, {read - sent:.1f}, {time.monotonic() - read:.1f}",
        ),
    ]
    verdict.figures.append(("processor seconds of all", f"{processor_seconds() - cpu:.0f}"))
    record_property("figures", verdict.figures)
    assert not verdict.complaints, str(verdict)


def processor_seconds() -> float:
    """Of this process and of those of its children that have ended."""
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)
