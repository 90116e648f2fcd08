"""
What the processes write down, each in a file of its own: a line by one write(). A line without its end is one whose
writer was killed: he had not gone on, so it does not count.

    A <chat> <seq> <client id> <1 if it was there before>        a message was accepted
    R <chat> <client id> <1 if it may be there all the same>     it was refused: the sender is not in the chat
    F <person> <chat> <missed> <seq>=<client id> <seq>:<event>…  what came, in the order in which it came
    K <person> <chat> <seq> <chat> <seq>…                        that it was read was accepted
    X <what>                                                     something is wrong
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from components.services.chat import ChatMessage


class Notes:
    """The file of this process; *role* is the same for all that have had its place."""

    def __init__(self, folder: Path, role: str) -> None:
        # CLOCK_MONOTONIC, which all processes share; so the names are in the order of the processes.
        path = folder / f"{role}.{time.monotonic_ns():020}.{os.getpid()}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, *lines: str) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        assert os.write(self._file, data) == len(data)


def read(folder: Path, role: str) -> Iterator[list[str]]:
    """The words of each line of all who have had that place, in order."""
    for path in sorted(folder.glob(f"{role}.*")):
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield line.split()


def token(message: ChatMessage) -> str:
    """A message or an event as it stands in a note."""
    if message.event:
        return f"{message.seq}:{message.event.kind}"
    return f"{message.seq}={message.client_id}"


def seq(token: str) -> int:
    """The seq that stands first in it."""
    return int(token.partition(":" if ":" in token else "=")[0])
