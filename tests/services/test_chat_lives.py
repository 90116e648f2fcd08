"""How long the keys of a chat live, and what bounds each of them."""

from __future__ import annotations

import pytest
from redis import Redis

from components import keys
from components.buckets import bucket
from components.services.chat import Chat, ChatSettings, Inbox
from tests.support.chats import let_pass, texts

HOUR, DAY, WEEK = 3_600, 86_400, 7 * 86_400


@pytest.mark.parametrize(
    ("before", "after", "pause"),
    [(HOUR, WEEK, DAY), (HOUR, None, DAY), (None, WEEK, DAY), (WEEK, HOUR, HOUR / 2), (DAY, WEEK, 2 * DAY)],
)
def test_counts_stay_right_when_a_chat_is_given_another_life(
    redis: Redis, before: float | None, after: float | None, pause: float
) -> None:
    chat = Chat.create("joe", members=["jack"], settings=ChatSettings(max_age=before, rate_limit=0))
    for number in range(3):
        chat.send("joe", f"{number} @jack", mentions=["jack"])
        chat.send("jack", f"{number}")
    chat.configure(max_age=after)

    let_pass(redis, chat.id, pause)

    [news] = Inbox("jack").chats()
    assert (news.unread, news.mentions) == (3, 3)
    assert {each.user: (each.unread, each.mentions) for each in chat.members()} == {
        "joe": (3, 0),
        "jack": (3, 3),
    }
    assert texts(chat.history("jack").messages)[-1] == "configured"


def test_no_key_of_a_chat_outlives_or_dies_before_its_messages(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], settings=ChatSettings(rate_limit=0))
    for number in range(3):
        chat.send("joe", f"{number}", mentions=["jack"])
        chat.send("jack", f"{number}", mentions=["joe"])
    tag = bucket(chat.id)
    messages = keys.chat_messages(tag, chat.id)
    ends = [keys.chat_sent(tag, chat.id), keys.chat_mentions(tag, chat.id), keys.chat_own(tag, chat.id)]

    for age in (HOUR, WEEK, None, DAY):
        chat.configure(max_age=age)

        alike = [key for end in ends for key in redis.keys(f"{end}/*".replace("{", "[{]"))]
        assert len(alike) == 1 + 2 + 2
        left = {round(redis.pttl(key) / 1000) for key in [messages, *alike]}
        assert left == {0 if age is None else age}
