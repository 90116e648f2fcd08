"""Errors in a process that sets up the settings and loads no apps, which translations need."""

from __future__ import annotations

import subprocess
import sys

from components.embedded import EmbeddedServer

CODE = """
import sys
from django.conf import settings
settings.configure(CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": sys.argv[1]}})
from components.exceptions import ChatNotFound, InvalidMessage, InvalidName
from components.services.chat import Chat
from components.services.mailboxes import Mailbox
for call in (
    lambda: Chat("nowhere").send("joe", "hello"),
    lambda: Mailbox("joe").push("jack", "x" * 1_000_000),
    lambda: Chat.create("joe", text="x" * 1_000_000),
):
    try:
        call()
    except (ChatNotFound, InvalidMessage, InvalidName) as error:
        print(error)
"""


def test_the_reason_of_a_refusal_is_told_in_english(redis_server: EmbeddedServer) -> None:
    done = subprocess.run([sys.executable, "-c", CODE, redis_server.url], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    absent, full, long = done.stdout.splitlines()
    assert absent == "There is no chat 'nowhere', or the person is not in it."
    assert "1,000,000" in full
    assert "1,000,000" in long or "characters" in long
