"""What the turns of chat.py ask of a system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantees:
    """What the figures of a system contain, in a few words each."""

    kept: str
    order: str
    repeated: str
    membership: str
    waits: str


class System:
    guarantees: Guarantees

    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self.version = version


class Store(System, ABC):
    """What keeps what is said in a chat until it is read."""

    @abstractmethod
    def create(self, chat: str, members: Sequence[str]) -> None: ...

    @abstractmethod
    def send(self, chat: str, sender: str, text: str) -> None: ...

    @abstractmethod
    def fetch(self, person: str) -> Mapping[str, int]:
        """All that he has not read, in all his chats; the last seq of each chat that has something."""

    @abstractmethod
    def acknowledge(self, person: str, read: Mapping[str, int]) -> None: ...


class Channel(System, ABC):
    """What hands what is said in a group to those who wait for it. Each method in a running event loop."""

    @abstractmethod
    async def create(self, group: str, members: Sequence[str]) -> None:
        """Before anybody reads or sends; in any process."""

    async def sit_by(self, group: str, members: int) -> None:
        """So many are in the group from here on, and read nothing."""

    @abstractmethod
    async def send(self, group: str, sender: str, text: str) -> None: ...

    @abstractmethod
    def read(self, groups: Sequence[str], person: str) -> AsyncIterator[Sequence[str]]:
        """
        The texts that come to a member of these groups, for ever. It begins with an empty answer: from then on
        nothing is missed.
        """
