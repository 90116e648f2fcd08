"""The mailbox over HTTP: push, look, pull, acknowledge. A mere link takes no message."""

from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.services.mailboxes import Mailbox
from tests.fixtures.api import Asker, problem

pytestmark = pytest.mark.usefixtures("redis")


def push(sender: Asker, to: Asker, text: str = "hello", **headers: str) -> dict[str, Any]:
    answer = sender("POST", f"mailboxes/{to.id}", {"text": text}, **headers)
    assert answer.status_code == 201, answer.content
    told: dict[str, Any] = answer.json()
    return told


def pull(recipient: Asker, **content: Any) -> dict[str, Any]:
    answer = recipient("POST", "mailbox/pull", {"timeout": 0, **content})
    assert answer.status_code == 200, answer.content
    told: dict[str, Any] = answer.json()
    return told


def fate(sender: Asker, to: Asker, id: int) -> str:
    answer = sender("GET", f"mailboxes/{to.id}/messages/{id}")
    assert answer.status_code == 200, answer.content
    return str(answer.json()["fate"])


def test_a_message_comes_until_it_is_acknowledged_as_its_sender_sees(joe: Asker, jill: Asker) -> None:
    pushed = joe("POST", f"mailboxes/{jill.id}", {"text": "hello", "data": {"a": [1, None]}})
    id = pushed.json()["id"]
    assert pushed.status_code == 201
    assert pushed["Location"] == f"/api/mailboxes/{jill.id}/messages/{id}"
    assert fate(joe, jill, id) == "waiting"

    for is_again in (False, True):
        told = pull(jill)
        [message] = told["messages"]
        assert message["sent_at"].endswith("Z")
        del message["sent_at"]
        assert message == {
            "id": id,
            "sender": joe.id,
            "text": "hello",
            "data": {"a": [1, None]},
            "is_again": is_again,
            "is_unreadable": False,
        }
        assert told["people"] == {joe.id: "joe"}
        assert fate(joe, jill, id) == "handed_out"

    assert jill("POST", "mailbox/acknowledge", {"id": id}).json() == {"acknowledged": 1}
    assert jill("POST", "mailbox/acknowledge", {"id": id}).json() == {"acknowledged": 0}
    assert pull(jill)["messages"] == []
    assert fate(joe, jill, id) == "acknowledged"


def test_a_repeated_push_stores_one_message(joe: Asker, jill: Asker) -> None:
    first = push(joe, jill, Idempotency_Key="key-1")
    again = joe("POST", f"mailboxes/{jill.id}", {"text": "hello"}, Idempotency_Key="key-1")

    assert again.status_code == 200
    assert again.json() == {**first, "is_duplicate": True}
    assert Mailbox(jill.id).depth() == 1


def test_only_the_sender_sees_what_became_of_a_message(joe: Asker, jill: Asker, stranger: Asker) -> None:
    id = push(joe, jill)["id"]

    for asker in (stranger, jill):
        problem(asker("GET", f"mailboxes/{jill.id}/messages/{id}"), 404, "message-not-found")
    for wrong in ("0", "-1", "x", "1" * 17, str(2**53), str(id + 1), "٣"):
        problem(joe("GET", f"mailboxes/{jill.id}/messages/{wrong}"), 404, "message-not-found")


@pytest.mark.parametrize("id", ["999999", "x", "-1", "%00", "9" * 400, "1e3"])
def test_mail_to_nobody_is_refused(joe: Asker, redis: Redis, id: str) -> None:
    problem(joe("POST", f"mailboxes/{id}", {"text": "hello"}), 404, "person-not-found")
    assert redis.dbsize() == 0


def test_a_project_says_who_may_write_to_whom(joe: Asker, jill: Asker, redis: Redis) -> None:
    with override_settings(COMPONENTS={"PEOPLE": "tests.test_people.Friends"}):
        refused = problem(joe("POST", f"mailboxes/{jill.id}", {"text": "hello"}), 404, "person-not-found")
        unknown = problem(joe("POST", "mailboxes/999999", {"text": "hello"}), 404, "person-not-found")
        push(joe, joe)
    assert refused == unknown
    assert Mailbox(jill.id).depth() == 0
