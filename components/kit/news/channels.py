"""Names of the channels on which scripts publish. A channel is no key: it belongs to no slot, and holds nothing."""

from __future__ import annotations

from typing import Literal

from components.conf import conf


def channel(kind: Literal["chat", "inbox", "mailbox"], name: str) -> str:
    """The channel of a chat, of an inbox or of a mailbox."""
    return f"{conf().prefix}:news:{kind}:{name}"
