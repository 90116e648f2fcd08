"""
ChatReader: the list of all chats, in pages, and the full content of a chat, for the control room.

Each bucket has an index of chat ids. A page takes three round trips, however many chats there are: one for the sizes
of all buckets, one for the ids in the buckets that it shows, and one for these chats. Reading changes nothing.
"""

from components.kit.buckets import Index
from components.kit.client import get_client
from components.kit.sync_async import at_once
from components.services.chat.chat import Chat, look_at
from components.services.chat.facts import ChatInfo, Found, Page
from components.services.chat.ids import is_id
from components.services.chat.keys import index
from components.services.chat.search import Search

_ALL = Index(index, desc=True)


class ChatReader:
    """The queries of the control room. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """Return how many chats there are."""
        return sum(_ALL.sizes())

    def page(self, *, offset: int = 0, limit: int = 50) -> list[ChatInfo]:
        """
        Return a page of chats from the *offset*-th on, the one with the latest message of a bucket first.

        Pages go through one bucket after another. New messages can move a chat to another page.
        """
        found = at_once(look_at(get_client(), _ALL.page(offset, limit)))
        return sorted((info for info in found if info), key=_last_at, reverse=True)

    def find(self, id: str) -> ChatInfo | None:
        """Return the chat with this id; None if there is none."""
        return at_once(look_at(get_client(), [id]))[0] if is_id(id) else None

    def messages(self, id: str, *, before: int | None = None, limit: int = 50) -> Page:
        """Return a page of a chat's history, for users who may read all of it. Raises ChatNotFound, ValueError."""
        return at_once(Chat(id)._read(get_client(), "", before, None, limit))

    def search(self, id: str, words: str, *, before: int | None = None, limit: int = 50) -> Found:
        """Search a chat's history as Chat.search() does, for users who may read all of it."""
        return at_once(Chat(id)._find(get_client(), "", Search(words), before, limit))


def _last_at(info: ChatInfo) -> float:
    return (info.last_at or info.created_at).timestamp()
