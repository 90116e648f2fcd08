"""
News: a hint to who waits that there is something to look at. Nothing is stored, so nothing depends on it but time.

Scripts publish on the channel of what they change.
"""

from __future__ import annotations

from typing import Literal

from components.conf import conf


def channel(kind: Literal["chat", "inbox", "mailbox"], name: str) -> str:
    """The channel of a chat, of an inbox or of a mailbox."""
    return f"{conf().prefix}:news:{kind}:{name}"
