"""
FencedValue: a value in Redis that only the newest holder of a lock can still write.

Two strings in one slot: the value, and the fence of its last write. One script compares and writes both, so an older
holder that comes back, from a pause or with a packet that was late, is refused. The fence outlives the value by
`keep` seconds (a week), and stays as long as a value without a ttl does: only a holder that was stopped for longer
than that is no longer known to be older. If Redis loses its data, it loses the fences with it.
"""

from __future__ import annotations

from typing import Any

from components.exceptions import StaleFence
from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.scripts import Script, reading
from components.kit.values import check_fence, check_name, check_seconds
from components.services.locks import keys

_SET = Script("locks/set_fenced")
_DELETE = Script("locks/delete_fenced")

#: Seconds: longer than anything is stopped and then goes on, be it a laptop over the holidays.
KEEP = 7 * 86_400.0
_DIGITS = 19  # of the largest fence


class FencedValue:
    """
    The value *name*. Raises InvalidName, InvalidDuration.

        with lock("report", timeout=60) as held:
            FencedValue("report").set(make_report(), fence=held.fence)
    """

    def __init__(self, name: str, *, keep: float = KEEP) -> None:
        self.name = check_name("fenced value", name)
        self._keep = round(check_seconds("keep", keep) * 1000)

    def set(self, value: bytes | str, *, fence: int, ttl: float | None = None) -> None:
        """Write it, for *ttl* seconds (None: for good). Raises StaleFence, InvalidFence, InvalidDuration."""
        at_once(self._set(get_client(), value, fence, ttl))

    async def aset(self, value: bytes | str, *, fence: int, ttl: float | None = None) -> None:
        """The same, awaited."""
        await self._set(get_async_client(), value, fence, ttl)

    async def _set(self, client: AnyRedis, value: bytes | str, fence: int, ttl: float | None) -> None:
        if not isinstance(value, bytes | str):
            raise TypeError(
                f"A fenced value is bytes or str, not {type(value).__name__}: serialize it first."
            )
        lifetime = 0 if ttl is None else round(check_seconds("ttl", ttl) * 1000)
        await self._write(client, _SET, fence, value, lifetime, self._keep)

    def get(self) -> bytes | None:
        """What was written last; None if nothing was, or it is deleted or expired."""
        return at_once(self._get(get_client()))

    async def aget(self) -> bytes | None:
        """The same, awaited."""
        return await self._get(get_async_client())

    async def _get(self, client: AnyRedis) -> bytes | None:
        value: bytes | None = await reading(lambda: client.get(keys.fenced_value(self.name)))
        return value

    def delete(self, *, fence: int) -> None:
        """Let there be no value; an older holder can still not write one. Raises as set() does."""
        at_once(self._delete(get_client(), fence))

    async def adelete(self, *, fence: int) -> None:
        """The same, awaited."""
        await self._delete(get_async_client(), fence)

    async def _delete(self, client: AnyRedis, fence: int) -> None:
        await self._write(client, _DELETE, fence, self._keep)

    async def _write(self, client: AnyRedis, script: Script, fence: int, *args: Any) -> None:
        own = f"{check_fence(fence):0{_DIGITS}d}"
        names = [keys.fenced_value(self.name), keys.fenced_value_fence(self.name)]
        newer = await script.acall(client, keys=names, args=[own, *args])
        if newer is not None:
            raise StaleFence(
                f"The value {self.name!r} was written with fence {int(newer)}, newer than {fence}: the lock was lost "
                "to another holder. Nothing was changed."
            )
