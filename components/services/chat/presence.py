"""
Presence: who has a chat open, and who is typing there.

Nothing of this is a part of the history. A sign of life and "is typing" are leases on the server's clock, in two
small indexes in the slot of the chat. A member who has the chat open asks again and again, and waits for up to a
minute with each request: the answers tell them about others, and the requests tell others about them. Only somebody
who begins to type wakes those who wait. The next answer says who has come or gone.

COMPONENTS["CHAT_PRESENCE"] turns all of it off. Then Redis is not asked, and everybody gets NOBODY.
"""

import asyncio
from collections.abc import Collection

from components.conf import conf
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.decoding import text_of
from components.kit.pubsub import Listener, channel
from components.kit.scripts import Script
from components.kit.sync_async import at_once, both
from components.kit.validation import check_seconds, check_several
from components.services.chat.chat import check_known, refusal, unknown
from components.services.chat.facts import Present
from components.services.chat.ids import check_person
from components.services.chat.keys import ChatKeys

MOST_TOLD = 50  # people who have a chat open, in one answer
MOST_TYPING = 5  # people who are noted as typing in one chat
MOST_WOKEN = 100  # if more people have a chat open, nobody is woken

NOBODY = Present((), 0, ())
_A_BIT = 0.02  # seconds after the end of a lease, so that it has ended when Redis is asked

ATTEND = Script("chat/attend")
TYPE = Script("chat/type")


class Presence:
    """
    Who has the chat *id* open.

    Every method raises RedisUnavailable, and ChatNotFound if the chat does not exist or the person is not in it.
    Muted members are neither shown nor told anything.
    """

    def __init__(self, id: str) -> None:
        self.id = check_known(id)

    async def _look(self, client: AnyRedis, user: str) -> Present:
        """Return who has the chat open, without noting that *user* has."""
        return (await self._ask(client, user, "look"))[0]

    look, alook = both(_look)

    def attend(self, user: str, *, is_shown: bool = True) -> Present:
        """
        Note that *user* has the chat open, for a minute, and return who else has.

        If *is_shown* is false, others do not learn of *user*, neither now nor when they were last here.
        """
        return at_once(self._ask(get_client(), user, "note" if is_shown else "hide"))[0]

    async def aattend(
        self, user: str, *, is_shown: bool = True, typing: Collection[str] | None = None, wait: float = 0.0
    ) -> Present:
        """
        Do what attend() does, awaited.

        *typing* are those of whom the caller knows that they are typing. If they are still the same, wait for up to
        *wait* seconds until that changes; None does not wait.
        """
        check_several("people who are typing", typing or ())
        left = check_seconds("wait", wait, may_be_zero=True)
        client, mode = get_async_client(), "note" if is_shown else "hide"
        if typing is None or not left:
            return (await self._ask(client, user, mode))[0]
        until = asyncio.get_running_loop().time() + left
        async with Listener.of_the_loop().interest([self._channel]) as interest:
            while True:
                present, ends_in = await self._ask(client, user, mode)
                left = until - asyncio.get_running_loop().time()
                if set(present.typing) != set(typing) or left <= 0:
                    return present
                # Nobody announces that somebody has stopped typing.
                await interest.wait(min(left, ends_in + _A_BIT if ends_in else left))

    async def _type(self, client: AnyRedis, user: str) -> None:
        """
        Note that *user* is typing, for six seconds or until they send their message.

        If five others are typing already, nothing is noted. Raises ChatClosed, Muted.
        """
        if not conf().chat_presence:
            return
        said, *why = await TYPE.run(
            client,
            ChatKeys(self.id),
            person=check_person(user),
            most=MOST_TYPING,
            most_woken=MOST_WOKEN,
            channel=self._channel,
        )
        if said not in (b"typing", b"crowded"):
            raise refusal(self.id, said, *why)

    type, atype = both(_type)

    async def _ask(self, client: AnyRedis, user: str, mode: str) -> tuple[Present, float]:
        """Return who is present, and the seconds until the first of them stops typing; 0 if nobody is typing."""
        call = ATTEND.call(ChatKeys(self.id), person=check_person(user), mode=mode, most=MOST_TOLD)
        if not conf().chat_presence:
            return NOBODY, 0.0
        answer = await ATTEND.acall(client, keys=call[0], args=call[1])
        if not answer:
            raise unknown(self.id)
        count, here, typing, ends_in = answer
        return Present(tuple(map(text_of, here)), count, tuple(map(text_of, typing))), ends_in / 1000

    @property
    def _channel(self) -> str:
        return channel("typing", self.id)
