"""Who the people are: users by default, and whatever class the project names."""

import asyncio
from collections.abc import Collection, Iterable

import pytest
from django.contrib.auth.models import User
from django.test.utils import override_settings

from components.people import Users, anote_contacts, listen_to_contacts, note_contacts, people, unwilling
from components.people.person import persons

pytestmark = pytest.mark.django_db


class Friends(Users):
    """A project's own."""

    def refused(self, by: str, ids: Iterable[str]) -> set[str]:
        return set(ids) - {by}


@pytest.fixture
def joe() -> User:
    return User.objects.create_user("joe")


@pytest.fixture
def jill() -> User:
    return User.objects.create_user("jill")


def test_users_are_named_and_found_by_their_exact_name(joe: User, jill: User) -> None:
    assert people().names([str(joe.pk), str(jill.pk), "999"]) == {str(joe.pk): "joe", str(jill.pk): "jill"}
    assert people().find(["joe", "Joe", "jo", "joe ", "joe\0", ""]) == {"joe": str(joe.pk)}
    assert persons([str(joe.pk)])[""].name == ""


WIDE = "jill\N{FULLWIDTH COMMERCIAL AT}example.com"


class Called(Users):
    name_field = "last_name"


def test_an_address_is_neither_shown_nor_found(joe: User, jill: User) -> None:
    known = {str(joe.pk): "Joe", str(jill.pk): str(jill.pk)}
    User.objects.filter(pk=joe.pk).update(username="joe@example.com", first_name="Joe", last_name="J.")
    User.objects.filter(pk=jill.pk).update(username=WIDE, last_name="J.")

    assert people().names(known) == known
    assert people().find(["joe@example.com", WIDE, *known.values()]) == {}
    assert Called().names(known) == dict.fromkeys(known, "J.")
    assert Called().find(["J."]) == {}  # there are two
    User.objects.filter(pk=joe.pk).update(last_name="Jones")
    assert Called().find(["J.", "Jones"]) == {"J.": str(jill.pk), "Jones": str(joe.pk)}


def test_a_deactivated_person_keeps_their_name_and_is_not_found(joe: User) -> None:
    User.objects.update(is_active=False)

    assert people().names([str(joe.pk)]) == {str(joe.pk): "joe"}
    assert people().find(["joe"]) == {}


def test_a_malformed_id_belongs_to_nobody(joe: User) -> None:
    User.objects.filter(pk=joe.pk).update(id=1)
    malformed = ["", "x", " 1", "01", "+1", "-1", "1.0", "9" * 19, "9" * 5000, "٣", "1\0", "\ud800"]

    assert people().names([*malformed, "1"]) == {"1": "joe"}
    assert [people().names([each]) for each in malformed] == [{}] * len(malformed)


def test_everybody_may_write_to_everybody_unless_the_project_says_no(joe: User, jill: User) -> None:
    ids = [str(joe.pk), str(jill.pk)]
    assert people().refused(ids[0], ids) == set()
    with override_settings(COMPONENTS={"PEOPLE": "tests.test_people.Friends"}):
        assert people().refused(ids[0], ids) == {ids[1]}
    assert people().refused(ids[0], ids) == set()


def shy(by: str, ids: Iterable[str]) -> Iterable[str]:
    """A project's own consent. It names two about whom nobody asked, too."""
    return [by, "stranger", *(each for each in ids if int(each) % 2 == 0)]


def test_everybody_can_be_put_into_a_chat_unless_the_project_says_no() -> None:
    assert unwilling("1", ["1", "2", "3"]) == set()
    with override_settings(COMPONENTS={"CHAT_CONSENT": "tests.test_people.shy"}):
        assert unwilling("1", ["1", "3"]) == unwilling("1", []) == set()
        assert unwilling("1", ["1", "2", "3", "4"]) == {"2", "4"}


def test_listeners_are_told_once_to_whom_people_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.people._listeners", [])
    told: list[tuple[str, list[str], bool]] = []

    class Listener:
        def note(self, user: str, ids: Collection[str]) -> None:
            told.append((user, list(ids), False))

        async def anote(self, user: str, ids: Collection[str], *, anew: bool = False) -> None:
            told.append((user, list(ids), anew))

    listener = Listener()
    for _ in range(2):
        listen_to_contacts(listener)
    note_contacts("joe", ["jill", "ann"])
    asyncio.run(anote_contacts("joe", ("bob",), anew=True))

    assert told == [("joe", ["jill", "ann"], False), ("joe", ["bob"], True)]
