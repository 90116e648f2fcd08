"""
The monkey of the chats: several times a second somebody comes or goes, and each second something breaks; its seed
decides who and what. What it did to whom in which chat it keeps, in order, for the verdict.

A call that got no answer is repeated until it has one, as people do: so each is in the chat's sequence once.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import ChatNotFound, MessageNotFound, NotAMember, RedisUnavailable
from components.services.chat import Chat, EventKind
from tests.chaos.chats import plan
from tests.chaos.chats.troupe import Troupe
from tests.support.proxy import LossyProxy

_BEAT, _STEP = 1.0, 0.05  # seconds between two breaks, and two comings or goings
_SPENT, _LATE_BEAT = (
    60,
    4.0,
)  # after so many breaks it gets tired: on a slow machine it would else be slower still

#: What it has to have done.
DISTURBANCES = {
    "SIGKILL of senders", "SIGKILL of readers", "SIGSTOP of readers", "Redis killed", "SCRIPT FLUSH",
    "connections cut", "replies lost", "silence", "message deleted",
}  # fmt: skip


class Monkey:
    def __init__(
        self, server: EmbeddedServer, troupe: Troupe, to_senders: LossyProxy, to_readers: LossyProxy
    ) -> None:
        self._server, self._troupe = server, troupe
        self._to_senders, self._to_readers = to_senders, to_readers
        self._random = Random(plan.SEED)
        self._acts: list[Callable[[], bool]] = []
        self.done: Counter[str] = Counter()
        #: Chat -> what happened to whom, in order.
        self.moves: defaultdict[str, list[tuple[EventKind, str]]] = defaultdict(list)
        self.deleted: defaultdict[str, set[int]] = defaultdict(set)
        self._inside: set[str] = set()

    def run(self, *, within: float) -> None:
        """Until the senders have done their work, and each thing was done."""
        breaks, next_beat = 0, time.monotonic()
        next_step = next_beat
        deadline = next_beat + within
        while not (self._troupe.is_done("senders") and self._has_done_all()):
            now = time.monotonic()
            assert now < deadline, f"It is not over after {within} s; done so far: {self.done}."
            self._troupe.look()
            if now >= next_beat:
                next_beat = now + (_BEAT if breaks < _SPENT else _LATE_BEAT)
                breaks += 1
                self._break_something()
            if now >= next_step:
                next_step = now + _STEP
                self._move(self._random.choice(plan.PERSONS))
            time.sleep(0.01)

    def calm(self) -> None:
        for proxy in (self._to_senders, self._to_readers):
            proxy.lose_replies(to="", times=0)
        self._troupe.resume_all()

    def _has_done_all(self) -> bool:
        done = self.done | self._troupe.done
        # Nobody is left to be killed when all messages are sent: a run of few messages is over before that.
        return all(done[each] for each in DISTURBANCES if not each.endswith("of senders"))

    def _break_something(self) -> None:
        """Each comes once before any comes again; one for which there is nobody is left out."""
        if not self._acts:
            self._acts = [
                self._kill_sender, self._kill_reader, self._kill_sender, self._kill_reader, self._stop_reader,
                self._kill_redis, self._flush_scripts, self._cut, self._lose, self._lose, self._lose_silently,
                self._delete_message,
            ]  # fmt: skip
            self._random.shuffle(self._acts)
        while self._acts and not self._acts.pop()():
            pass

    def _kill_sender(self) -> bool:
        return self._troupe.kill("senders", self._random)

    def _kill_reader(self) -> bool:
        return self._troupe.kill("readers", self._random)

    def _stop_reader(self) -> bool:
        return self._troupe.stop("readers", self._random, self._random.uniform(4.0, 8.0))

    def _kill_redis(self) -> bool:
        self._server.kill()
        time.sleep(self._random.uniform(0.0, 0.3))
        self._server.start()
        return self._did("Redis killed")

    def _flush_scripts(self) -> bool:
        self._direct("SCRIPT", "FLUSH")
        return self._did("SCRIPT FLUSH")

    def _cut(self) -> bool:
        self._direct("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        return self._did("connections cut")

    def _lose(self) -> bool:
        proxy = self._random.choice((self._to_senders, self._to_readers))
        proxy.lose_replies(to="EVALSHA", times=self._random.randint(1, 20))
        return self._did("replies lost")

    def _lose_silently(self) -> bool:
        proxy = self._random.choice((self._to_senders, self._to_readers))
        proxy.lose_replies(to="EVALSHA", times=1, silently=True)
        return self._did("silence")

    def _delete_message(self) -> bool:
        """One of the last, which some have read and some have not."""
        chat = self._random.choice([chat for chat in plan.CHATS if chat not in plan.SHORT])
        page = self._insist(lambda: Chat(chat).history(plan.OWNER, limit=20))
        there = [m.seq for m in page.messages if not m.event]
        if not there:
            return False
        seq = self._random.choice(there)
        self._insist(lambda: Chat(chat).delete_message(seq), but=MessageNotFound)
        self.deleted[chat].add(seq)
        return self._did("message deleted")

    def _move(self, person: str) -> None:
        """Into his ninth chat, or out of it."""
        chat = Chat(plan.ninth_chat(person))
        if person in self._inside:
            self._inside.remove(person)
            self._go(chat, person)
        else:
            self._inside.add(person)
            if self._random.random() < 0.5:
                self._insist(lambda: chat.join(person))
            else:
                self._insist(lambda: chat.add([person]))
            self._note(chat, EventKind.JOINED, person)

    def _go(self, chat: Chat, person: str) -> None:
        way = self._random.choice((EventKind.LEFT, EventKind.KICKED, EventKind.BLOCKED))
        if way is EventKind.LEFT:
            self._insist(lambda: chat.leave(person), but=ChatNotFound)
        elif way is EventKind.KICKED:
            self._insist(lambda: chat.kick(person), but=NotAMember)
        else:
            self._insist(lambda: chat.block(person))
        self._note(chat, way, person)
        if way is EventKind.BLOCKED:
            self._insist(lambda: chat.unblock(person))
            self._note(chat, EventKind.UNBLOCKED, person)

    def _note(self, chat: Chat, kind: EventKind, person: str) -> None:
        self.moves[chat.id].append((kind, person))
        self.done[str(kind)] += 1

    def _insist(self, call: Callable[[], Any], *, but: type[Exception] | None = None) -> Any:
        """Until it is answered; *but* is the answer of a second call to which the first had come through."""
        asked = 0
        while True:
            asked += 1
            try:
                return call()
            except RedisUnavailable:
                time.sleep(0.01)
            except Exception as error:
                if but and isinstance(error, but) and asked > 1:
                    return None
                raise

    def _direct(self, *command: str) -> None:
        with Redis.from_url(self._server.url) as client:
            client.execute_command(*command)

    def _did(self, what: str) -> bool:
        self.done[what] += 1
        return True
