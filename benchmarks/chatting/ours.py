"""Ours, as any project would use it; what is read is acknowledged, as a page would do it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from benchmarks.chatting.base import Channel, Guarantees, Store
from components.services.chat import Chat, ChatSettings, Inbox

_PATIENCE = 25.0  # seconds that a long-poll waits
#: Nothing is refused for its rate, and nothing goes while it is measured; all else as by default.
_SETTINGS = ChatSettings(rate_limit=0, max_messages=10_000_000, max_bytes=1 << 40)

_GUARANTEES = Guarantees(
    kept="by number, age and bytes",
    order="by the server",
    repeated="recognised",
    membership="with each message",
    waits="one connection for all",
)


class OurStore(Store):
    guarantees = _GUARANTEES

    def create(self, chat: str, members: Sequence[str]) -> None:
        Chat.create(members[0], members=members[1:], id=chat, settings=_SETTINGS)

    def send(self, chat: str, sender: str, text: str) -> None:
        Chat(chat).send(sender, text)

    def fetch(self, person: str) -> Mapping[str, int]:
        return {chat.chat_id: chat.messages[-1].seq for chat in Inbox(person).fetch()}

    def acknowledge(self, person: str, read: Mapping[str, int]) -> None:
        Inbox(person).acknowledge(read)


class OurChannel(Channel):
    guarantees = _GUARANTEES

    async def create(self, group: str, members: Sequence[str]) -> None:
        await Chat.acreate(members[0], members=members[1:], id=group, settings=_SETTINGS)

    async def send(self, group: str, sender: str, text: str) -> None:
        await Chat(group).asend(sender, text)

    async def read(self, groups: Sequence[str], person: str) -> AsyncIterator[Sequence[str]]:
        """By a long-poll, again and again, as the page does."""
        inbox = Inbox(person)
        positions = (await inbox.achanges({})).positions
        yield []
        while True:
            changes = await inbox.achanges(positions, limit=200, wait=_PATIENCE)
            positions = changes.positions
            yield [message.text for chat in changes.chats for message in chat.messages if not message.event]
