"""
FencedValue: a value in Redis that only the newest holder of a lock can write.

It is two strings in one slot: the value, and the fence of its last write. One script compares and writes both, so an
older holder that comes back, after a pause or with a late packet, is refused. The fence outlives the value by `keep`
seconds (a week by default), so only a holder that was stopped for longer than that is no longer recognised as older.
The fence of a value without a ttl does not expire. If Redis loses its data, it loses the fences as well.
"""

from typing import Any

from components.exceptions import StaleFence
from components.kit.client import AnyRedis
from components.kit.scripts import Script, idempotent
from components.kit.sync_async import both
from components.kit.validation import check_fence, check_name, check_seconds
from components.services.locks.keys import FencedKeys

SET = Script("locks/set_fenced")
DELETE = Script("locks/delete_fenced")

#: Seconds: longer than any process that is stopped and then continues, as on a laptop over the holidays.
KEEP = 7 * 86_400.0
_DIGITS = 19  # digits of the largest fence


class FencedValue:
    """
    The value *name*. Raises InvalidName, InvalidValue. Every method raises RedisUnavailable.

        with lock("report", timeout=60) as held:
            FencedValue("report").set(make_report(), fence=held.fence)
    """

    def __init__(self, name: str, *, keep: float = KEEP) -> None:
        self.name = check_name("fenced value", name)
        self._keep = round(check_seconds("keep", keep) * 1000)

    async def _set(
        self, client: AnyRedis, value: bytes | str, *, fence: int, ttl: float | None = None
    ) -> None:
        """
        Write the value, for *ttl* seconds (None: until it is deleted).

        Raises StaleFence, InvalidValue; TypeError for a value that is neither bytes nor text.
        """
        if not isinstance(value, bytes | str):
            raise TypeError(
                f"A fenced value is bytes or str, not {type(value).__name__}: serialize it first."
            )
        lifetime = 0 if ttl is None else round(check_seconds("ttl", ttl) * 1000)
        await self._write(client, SET, fence, content=value, ttl=lifetime)

    set, aset = both(_set)

    async def _get(self, client: AnyRedis) -> bytes | None:
        """Return the value; None if it was never written, was deleted, or has expired."""
        value: bytes | None = await idempotent(lambda: client.get(FencedKeys(self.name).value))
        return value

    get, aget = both(_get)

    async def _delete(self, client: AnyRedis, *, fence: int) -> None:
        """Delete the value. An older holder still cannot write one. Raises StaleFence, InvalidValue."""
        await self._write(client, DELETE, fence)

    delete, adelete = both(_delete)

    async def _write(self, client: AnyRedis, script: Script, fence: int, **args: Any) -> None:
        writer = f"{check_fence(fence):0{_DIGITS}d}"
        newer = await script.run(client, FencedKeys(self.name), writer=writer, keep=self._keep, **args)
        if newer is not None:
            raise StaleFence(
                f"The value {self.name!r} was written with the fence {int(newer)}, which is newer than {fence}: the "
                "lock was lost to another holder. Nothing was changed."
            )
