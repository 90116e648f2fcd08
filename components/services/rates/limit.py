"""
RateLimit: at most so many calls in any period of some length.

The calls of the last period are stored, so the limit is exact: it never lets twice as many through around the end of
a minute, as a window that begins each minute does, and no call waits while there is room, as with a bucket that is
filled drop by drop. That takes about a hundred bytes for each call.
"""

import math
import re
from typing import Any

from components.exceptions import InvalidValue, TooFast
from components.kit.client import AnyRedis
from components.kit.ids import new_call
from components.kit.leases import clock
from components.kit.scripts import Script, pause
from components.kit.sync_async import both
from components.kit.translation import gettext
from components.kit.validation import MAX_NAME, check_name, check_seconds
from components.services.counters import pattern_of, tally
from components.services.rates.keys import RateKeys

TAKE = Script("rates/take")
#: The most calls in a period, because each is stored.
MOST = 10_000
KEPT = 0.1  # seconds for which a turn is kept, for a caller that is on its way
_LONGEST = 31 * 86_400  # seconds
_RATE = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{0,9})\s*(s|sec|second|m|min|minute|h|hour|d|day)s?\s*", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class RateLimit:
    """
    At most as many calls as *rate* says, "100/m", in any period of that length, for each key apart.

    A rate is a number of calls, 1 to 10,000, and a period of up to 31 days: "5/s", "100/30s", "1000/h", "2/day". All
    processes that use the name share the limit. Raises InvalidName, InvalidValue.
    """

    def __init__(self, name: str, rate: str) -> None:
        self.name = check_name("rate limit", name)
        self.rate = rate
        #: Calls, and seconds.
        self.most, self.period = _parsed(rate)

    def __repr__(self) -> str:
        return f"RateLimit({self.name!r}, {self.rate!r})"

    async def _acquire(self, client: AnyRedis, key: object = "", *, wait: float = 0.0) -> None:
        """
        Count a call under *key*, which is taken as text, such as the id of a user. Wait for up to *wait* seconds, in
        the order of arrival. A call that is refused does not count.

        Raises TooFast, whose retry_after is the seconds to wait, InvalidValue, RedisUnavailable.
        """
        caller, until = new_call(), clock() + check_seconds("wait", wait, may_be_zero=True)
        while seconds := await self._ask(client, key, caller=caller, patience=until - clock()):
            if seconds > until - clock():
                tally("rates:refused", of=pattern_of(self.name))
                said = gettext("This is too fast: the limit is %(rate)s. Try again in %(seconds)s s.")
                raise TooFast(said % {"rate": self.rate, "seconds": f"{math.ceil(seconds)}"}, seconds)
            await pause(client, seconds)

    acquire, aacquire = both(_acquire)

    async def _ask(
        self,
        client: AnyRedis,
        key: object = "",
        *,
        caller: str,
        patience: float = math.inf,
        margin: float = 0.0,
    ) -> float:
        """
        Count a call and return 0.0, or return the seconds after which *caller* should ask again. If these are not
        more than *patience*, nobody else gets that turn. Calls count for *margin* seconds longer than the period.
        Raises InvalidValue, RedisUnavailable.
        """
        text = str(key)
        if len(text) > MAX_NAME:
            raise InvalidValue(f"A key of {self!r} has {len(text):,} characters; {MAX_NAME} are the most.")
        wait = await TAKE.run(
            client,
            RateKeys(self.name),
            name=self.name,
            key=text,
            call=new_call(),
            caller=caller,
            most=self.most,
            period=round((self.period + margin) * 1e6),
            patience=round(min(max(0.0, patience), _LONGEST) * 1e6),
            kept=round(KEPT * 1e6),
            rate=self.rate,
        )
        return int(wait) / 1e6

    ask, aask = both(_ask)


def _parsed(rate: Any) -> tuple[int, int]:
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    number, period = (int(found[1]), int(found[2] or 1) * _UNITS[found[3][0]]) if found else (0, 0)
    if not (1 <= number <= MOST and 1 <= period <= _LONGEST):
        raise InvalidValue(
            f"The rate is {rate!r}; it must be a number of calls, 1 to {MOST:,}, and a period of up to 31 days, such "
            'as "100/m", "5/s", "1000/h" or "10/30s".'
        )
    return number, period
