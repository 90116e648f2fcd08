"""The market's main job, with nothing left out: a sale, the queue, a worker, the mail."""

from __future__ import annotations

import subprocess
import sys
from email import message_from_bytes
from pathlib import Path

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from tests.project.market.crowd import PRICE, ROOT, Crowd

pytestmark = pytest.mark.slow


def test_a_worker_sends_the_mail_of_a_sale(
    tmp_path: Path, redis: Redis, redis_server: EmbeddedServer
) -> None:
    mail = tmp_path / "mail"
    crowd = Crowd(f"sqlite:///{tmp_path}/market.sqlite3", redis_server.url, EMAIL_URL=f"filemail:///{mail}")
    crowd.prepare()
    assert crowd.trade([("jack", crowd.first_of("joe"), PRICE)]) == ["bought"]

    worker = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", "runworker", "--burst"],
        cwd=ROOT,
        env=crowd.environment,
        capture_output=True,
        text=True,
    )

    assert worker.returncode == 0, worker.stderr
    assert "<market-sold-1@fakegame.example> sent to joe@fakegame.example" in worker.stderr
    (letter,) = (message_from_bytes(file.read_bytes()) for file in mail.iterdir())
    assert letter["Message-ID"] == "<market-sold-1@fakegame.example>"
    assert letter["To"] == "joe@fakegame.example"
    assert letter["Subject"] == "Sold: joe's 0 for 100 gold"
