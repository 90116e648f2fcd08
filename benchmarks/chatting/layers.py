"""The two channel layers of channels_redis, as their documents show them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from typing import Any

from benchmarks.bench import url
from benchmarks.chatting.base import Channel, Guarantees

_CAPACITY = 1_000_000  # messages of a channel: with the default of 100, core loses what is not read in time


class _Layer(Channel):
    @abstractmethod
    def _make(self) -> Any: ...

    @cached_property
    def _layer(self) -> Any:
        return self._make()

    async def create(self, group: str, members: Sequence[str]) -> None:
        """Nothing is kept of a group in which nobody waits."""

    async def sit_by(self, group: str, members: int) -> None:
        for _ in range(members):
            await self._layer.group_add(group, await self._layer.new_channel())

    async def send(self, group: str, sender: str, text: str) -> None:
        await self._layer.group_send(group, {"type": "chat.message", "sender": sender, "text": text})

    async def read(self, groups: Sequence[str], person: str) -> AsyncIterator[Sequence[str]]:
        name = await self._layer.new_channel()
        for group in groups:
            await self._layer.group_add(group, name)
        yield []
        while True:
            message = await self._layer.receive(name)
            yield [message["text"]]


class Core(_Layer):
    guarantees = Guarantees(
        kept="60 s, 100 of a consumer",
        order="by the clock of the sender",
        repeated="said twice",
        membership="no",
        waits="one connection for all",
    )

    def _make(self) -> Any:
        from channels_redis.core import RedisChannelLayer

        return RedisChannelLayer(hosts=[url()], capacity=_CAPACITY)


class PubSub(_Layer):
    guarantees = Guarantees(
        kept="no", order="by arrival", repeated="said twice", membership="no", waits="one connection for all"
    )

    def _make(self) -> Any:
        from channels_redis.pubsub import RedisPubSubChannelLayer

        return RedisPubSubChannelLayer(hosts=[url()])
