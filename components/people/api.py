"""Who people are: names for ids, ids for names, and to whom one may write."""

from __future__ import annotations

from collections.abc import Iterable

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.urls import path

from components.api.endpoints import Answer, endpoint
from components.api.fields import invalid, texts
from components.api.problems import Problem
from components.people import people, unwilling

_MOST = 50  # names in one request


async def find(request: HttpRequest, user: str) -> Answer:
    """GET people?name=joe&name=jill: the ids of those who are called exactly so."""
    names = texts(request, "name", most=_MOST)
    found = await sync_to_async(people().find)(names)
    return Answer({"people": [{"id": id, "name": name} for name, id in found.items()]})


async def check_members(field: str, by: str, ids: Iterable[str]) -> None:
    """
    Refuse to put somebody into a chat who is nobody, to whom *by* may not write, or who does not let *by* do it.

    Which of these it is, is not told. Raises Problem.
    """
    wanted = list(ids)
    if away := await _unreachable(by, wanted) | await sync_to_async(unwilling)(by, wanted):
        shown = ", ".join(sorted(away)[:5])
        raise invalid(field, f"There is nobody of this id to whom you may write: {shown[:200]}.")


async def check_newcomer(user: str, members: Iterable[str]) -> None:
    """Refuse to let *user* join a chat in which there is somebody to whom they may not write. Raises Problem."""
    others = set(members) - {user}
    if others and await sync_to_async(lambda: people().refused(user, others))() & others:
        raise Problem("blocked", "There is somebody in this chat to whom you may not write.")


async def check_recipient(by: str, id: str) -> None:
    """The same for the one whom the address names."""
    if await _unreachable(by, [id]):
        raise Problem("person-not-found", "There is nobody of this id to whom you may write.")


async def _unreachable(by: str, ids: Iterable[str]) -> set[str]:
    wanted = set(ids) - {by}
    if not wanted:
        return set()

    def ask() -> set[str]:
        known = people()
        return (wanted - known.names(wanted).keys()) | (known.refused(by, wanted) & wanted)

    return await sync_to_async(ask)()


urlpatterns = [path("people", endpoint(get=find), name="api-people")]
