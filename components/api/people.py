"""People in the HTTP API: find ids by names, and check who may write to whom."""

from collections.abc import Iterable
from typing import Annotated, TypedDict

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.urls import path
from django.utils.translation import gettext
from msgspec import Meta

from components.api.endpoints import Reply, endpoint, operation
from components.api.problems import Problem
from components.api.requests import invalid
from components.api.shapes import Request
from components.kit.validation import MAX_NAME
from components.people import people, unwilling


class Names(Request):
    name: Annotated[list[Annotated[str, Meta(max_length=MAX_NAME)]], Meta(min_length=1, max_length=50)]


class Person(TypedDict):
    id: str
    name: str


class Found(TypedDict):
    people: list[Person]


@operation("people", {200: Reply("The people who were found.", Found)}, query=Names)
async def find_people(request: HttpRequest, user: str, given: Names) -> Found:
    """Find the ids of people by their exact names."""
    found = await sync_to_async(people().find)(given.name)
    return {"people": [{"id": id, "name": name} for name, id in found.items()]}


async def check_members(field: str, by: str, ids: Iterable[str]) -> None:
    """
    Check that *by* may put these people into a chat. Raises Problem.

    The problem does not reveal whether a person does not exist, may not be written to, or refuses to be put into
    chats.
    """
    wanted = list(ids)
    if away := await _unreachable(by, wanted) | await sync_to_async(unwilling)(by, wanted):
        shown = ", ".join(sorted(away)[:5])
        said = gettext("There is nobody with this id to whom you may write: %(ids)s.")
        raise invalid(field, said % {"ids": shown[:200]})


async def check_newcomer(user: str, members: Iterable[str]) -> None:
    """Check that *user* may write to all *members* of a chat before they join it. Raises Problem."""
    others = set(members) - {user}
    if others and await sync_to_async(lambda: people().refused(user, others))() & others:
        raise Problem("blocked", gettext("Somebody in this chat is a person to whom you may not write."))


async def check_recipient(by: str, id: str) -> None:
    """Check that *by* may write to the person in the address. Raises Problem."""
    if await _unreachable(by, [id]):
        raise Problem("person-not-found", gettext("There is nobody with this id to whom you may write."))


async def _unreachable(by: str, ids: Iterable[str]) -> set[str]:
    """Return those of *ids* who do not exist, or to whom *by* may not write."""
    wanted = set(ids) - {by}
    if not wanted:
        return set()

    def ask() -> set[str]:
        known = people()
        return (wanted - known.names(wanted).keys()) | (known.refused(by, wanted) & wanted)

    return await sync_to_async(ask)()


urlpatterns = [path("people", endpoint(get=find_people), name="api-people")]
