"""
The contract of every address, written once over the served description: a valid request is answered as described, and
each refusal that the description declares does happen, and changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from itertools import chain, cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import AsyncClient
from django.test.utils import override_settings
from django.utils.translation import override
from jsonschema import Draft202012Validator
from redis import Redis

from components.api import openapi
from components.api.problems import KINDS
from components.api.urls import urlpatterns
from components.services.autocomplete import AddressBook
from components.services.autocomplete import api as autocomplete
from components.services.chat import Chat, ChatSettings
from components.services.chat.api import members, messages, presence
from components.services.chat.keys import ChatKeys
from components.services.mailboxes import Mailbox
from components.services.mailboxes.keys import MailboxKeys
from components.services.rates import RateLimit
from components.testing import redis_at
from tests.api.serving import WITHOUT_DATABASE, Everybody
from tests.fixtures.api import Asker, problem
from tests.support.snapshots import snapshot

DESCRIPTION: dict[str, Any] = json.loads(openapi.FILE.read_text(encoding="utf-8"))
METHODS = ("get", "post", "put", "patch", "delete")
BOOK, CHAT = "guild:7", "hall"
#: Refusals of every request, which are tested for all addresses at once.
GENERAL = {
    "not-authenticated",
    "csrf",
    "malformed",
    "too-large",
    "unsupported-media-type",
    "invalid-value",
    "redis-unavailable",
}


class People(Everybody):
    """Everybody, except those who do not exist."""

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        return {id: id for id in ids if id != "nobody"}


class Shelf:
    """Everybody but a stranger may search the book."""

    def may_search(self, user: str, book: str) -> bool:
        return book == BOOK and user != "stranger"


SETTINGS = WITHOUT_DATABASE | {"PEOPLE": f"{__name__}.People", "BOOKS": f"{__name__}.Shelf"}


def plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without references, and with null among its types."""
    if "$ref" in schema:
        return plain(DESCRIPTION["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if {"type": "null"} in schema.get("anyOf", ()):
        found = plain(schema["anyOf"][0])
        return {**found, "type": [found["type"], "null"]}
    return {"type": "string", **schema} if "enum" in schema else schema


@dataclass(frozen=True)
class Described:
    """An operation of the description."""

    path: str
    method: str
    told: Mapping[str, Any]

    def __str__(self) -> str:
        return str(self.told["operationId"])

    def fields(self, place: str) -> dict[str, Mapping[str, Any]]:
        """Return the schemas of the fields in the path, the query, the header or the body, by name."""
        if place == "body":
            return {name: plain(schema) for name, schema in self.body.get("properties", {}).items()}
        return {each["name"]: plain(each["schema"]) for each in self._parameters if each["in"] == place}

    @property
    def required(self) -> set[str]:
        told = {each["name"] for each in self._parameters if each["required"] and each["in"] == "query"}
        return told | set(self.body.get("required", ()))

    @property
    def _parameters(self) -> list[Mapping[str, Any]]:
        known = DESCRIPTION["components"]["parameters"]
        given = [*DESCRIPTION["paths"][self.path].get("parameters", ()), *self.told.get("parameters", ())]
        return [known[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in given]

    @property
    def has_body(self) -> bool:
        return "requestBody" in self.told

    @property
    def body(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.told.get("requestBody", {}).get("content", {})
        return plain(found["application/json"]["schema"]) if found else {}

    @property
    def kinds(self) -> set[str]:
        said = [each["description"] for each in self.told["responses"].values() if "$ref" in each]
        return {kind for text in said for kind in re.findall(r"[a-z-]+(?=[,.])", text)}


OPERATIONS = [
    Described(path, method, item[method])
    for path, item in DESCRIPTION["paths"].items()
    for method in METHODS
    if method in item
]
every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=str)


@dataclass(frozen=True)
class Request:
    """A request: who makes it, and its values by name, those in the path, the query, the header and the body."""

    operation: Described
    values: Mapping[str, Any]
    by: str = "joe"

    def __or__(self, other: Mapping[str, Any]) -> Request:
        """Return the request with other values, or of another person."""
        values = {**self.values, **other}
        by = values.pop("by", self.by)
        return Request(self.operation, values, by)

    def without(self, name: str) -> Request:
        return Request(self.operation, {key: self.values[key] for key in self.values if key != name}, self.by)

    def part(self, place: str) -> dict[str, Any]:
        """Return the values in one place. What is not described is in the body, or in the query."""
        known = {each: self.operation.fields(each) for each in ("path", "query", "header", "body")}
        rest = "body" if self.operation.has_body else "query"
        return {
            name: value
            for name, value in self.values.items()
            if place == next((each for each in known if name in known[each]), rest)
        }


#: Valid values of fields: those that a request needs, and what is not there without them.
VALID: dict[str, Any] = {
    "chat_id": CHAT,
    "seq": 2,
    "member": "jill",
    "sender": "jill",
    "recipient": "jill",
    "book": BOOK,
    "name": "joe",
    "q": "he",
    "text": "hello",
    "users": ["jack"],
    "emoji": "👍",
    "timeout": 0,
}
#: What else a valid request to an address has.
ALSO: dict[str, dict[str, Any]] = {
    "changeChat": {"title": "Hall"},
    "changeMember": {"role": "moderator"},
    "editMessage": {"text": "bye"},
    "joinChat": {"by": "jack"},
    "selectName": {"id": "1"},
    "acknowledgeMail": {"by": "jill"},
}


@dataclass(frozen=True)
class Site:
    """The site, asked over HTTP; joe is the owner of a chat with jill, whose mailbox has a message of his."""

    asker: Asker
    redis: Redis
    chat: Chat
    mail: int
    stack: ExitStack

    def valid(self, operation: Described) -> Request:
        known = {**VALID, "id": self.mail, **ALSO.get(str(operation), {})}
        wanted = {*operation.fields("path"), *operation.required, "by", *ALSO.get(str(operation), ())}
        wanted |= {"text", "timeout"} & {*operation.fields("query"), *operation.fields("body")}
        return Request(operation, {}) | {name: known[name] for name in wanted if name in known}

    def ask(self, request: Request, raw: bytes | None = None, **headers: str) -> Any:
        path, parts = request.operation.path[1:], request.part("path")
        path = re.sub(
            r"{(\w+)}", lambda found: quote(str(parts[found[1]]), safe="", errors="surrogatepass"), path
        )
        if query := request.part("query"):
            path += f"?{urlencode(query, doseq=True, errors='surrogatepass')}"
        content = request.part("body") if request.operation.has_body and raw is None else None
        headers = {"Authorization": f"Bearer {request.by}", **request.part("header"), **headers}
        return self.asker(request.operation.method.upper(), path, content, raw=raw, **headers)

    def change(self, **components: Any) -> None:
        """Change settings until the end of the test."""
        self.stack.enter_context(override_settings(COMPONENTS={**SETTINGS, **components}))

    def stored(self) -> Mapping[bytes, Any]:
        """Return what is stored, without what is counted of those who ask, create chats or add people to them."""
        stored = snapshot(self.redis).items()
        return {key: value for key, value in stored if b":inboxes:" not in key and b":rates:" not in key}


@pytest.fixture
def site(redis: Redis, nobody: Asker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    limit(monkeypatch, RateLimit("tests", "10000/s"))
    with override_settings(COMPONENTS=SETTINGS), ExitStack() as stack:
        free = ChatSettings(rate_limit=0, is_open=True)
        chat = Chat.create("joe", id=CHAT, members=["jill"], text="hello", settings=free)
        chat.send("jill", "hello")
        mail = Mailbox("jill").push("joe", "hello").id
        Mailbox("jill").pull()
        AddressBook(BOOK).add("Helen", id="1")
        yield Site(nobody, redis, chat, mail, stack)


def limit(monkeypatch: pytest.MonkeyPatch, rate: RateLimit) -> None:
    for module in (autocomplete, members, messages, presence):
        monkeypatch.setattr(module, "RATE", rate)


@every_operation
def test_a_valid_request_is_answered_as_described(site: Site, operation: Described) -> None:
    is_repeatable = "Idempotency-Key" in operation.fields("header")
    request = site.valid(operation) | ({"Idempotency-Key": "k"} if is_repeatable else {})

    answers = [site.ask(request) for _ in range(2 if is_repeatable else 1)]

    for answer in answers:
        assert answer.status_code < 300, answer.content
        told: Mapping[str, Any] = operation.told["responses"][str(answer.status_code)]
        assert {"Location", "ETag"} & told.get("headers", {}).keys() <= answer.headers.keys()
        if "content" in told:
            shape = told["content"]["application/json"]["schema"] | {"components": DESCRIPTION["components"]}
            Draft202012Validator(shape).validate(answer.json())
        else:
            assert (answer.status_code, answer.content) == (204, b"")
    assert len({answer.headers.get("Location") for answer in answers}) == 1


def invalid_values(schema: Mapping[str, Any], place: str) -> Iterator[Any]:
    """Yield values that are just outside of what the schema allows, or of other types."""
    types = schema.get("type", [])
    kinds = [types] if isinstance(types, str) else types
    numbers = {"integer": 1, "number": 1.0}
    for kind in kinds:
        if kind in numbers:
            yield from (schema["minimum"] - numbers[kind], schema["maximum"] + numbers[kind], "x")
            yield from (("true", "nan") if place == "query" else (True, "1"))
            yield from ([1.5] if kind == "integer" else [])
        if kind == "boolean":
            yield from (("2", "yes") if place == "query" else (1, "true"))
        if kind == "array":
            long = schema["items"]["maxLength"] + 1
            yield from ((["x" * long],) if place == "query" else ("joe", [5], [""], ["x" * long]))
            yield ["1"] * (schema["maxItems"] + 1)
        if kind == "string":
            yield from ([5] if place == "body" else [])
            yield from (["king"] if "enum" in schema else [])
            yield from (["x" * (schema["maxLength"] + 1)] if "maxLength" in schema else [])
            yield from ([""] if schema.get("minLength") else [])
            pattern = schema.get("pattern", "")
            yield from [bad for bad in ("", "a b", "x" * 65, "a\0") if not re.search(pattern, bad)][:3]
    if kinds and "null" not in kinds and place == "body":
        yield None


def wrong(request: Request) -> Iterator[tuple[str, Request]]:
    """Yield requests with one wrong value, and the name of its field."""
    operation = request.operation
    for place in ("query", "body", "header"):
        for name, schema in operation.fields(place).items():
            for value in invalid_values(schema, place):
                yield name, request | {name: value}
    for name in operation.required:
        yield name, request.without(name)
    if operation.has_body or operation.fields("query") or operation.path == "/contacts":
        yield "nonsense", request | {"nonsense": 1}


def test_a_value_outside_of_its_bounds_is_refused_and_named(site: Site) -> None:
    before = site.stored()
    for operation in OPERATIONS:
        for name, request in wrong(site.valid(operation)):
            answer = site.ask(request)
            told = json.loads(answer.content)
            kind = told["type"].rpartition("/")[2]
            if kind == "too-large":  # a cursor has no other bound than its body
                assert name == "cursor"
                continue
            assert kind in ("invalid-value", "invalid-message"), (request, told)
            assert told.get("field", name) == name, (request, told)
    assert site.stored() == before


def bounds(schema: Mapping[str, Any]) -> Iterator[Any]:
    numbers = [schema[name] for name in ("minimum", "maximum") if name in schema]
    yield from (*numbers, *map(float, numbers), *schema.get("enum", ()))  # JSON does not tell 1.0 from 1
    if "maxLength" in schema and "pattern" not in schema:
        yield "x" * schema["maxLength"]
    if "maxItems" in schema:
        yield [f"{number}" for number in range(schema["maxItems"])]
        yield ["x" * schema["items"]["maxLength"]]
    if "null" in schema.get("type", ()):
        yield None


@every_operation
def test_a_value_at_its_bounds_is_accepted(site: Site, operation: Described) -> None:
    request = site.valid(operation)
    for name, schema in {**operation.fields("query"), **operation.fields("body")}.items():
        for value in bounds(schema) if name != "timeout" else ():  # it would wait
            answer = site.ask(request | {name: value})
            is_refused = answer.status_code == 422 and json.loads(answer.content).get("field") == name
            assert not is_refused, (name, value, answer.content)


def test_a_body_that_cannot_be_read_is_refused(site: Site) -> None:
    before = site.stored()
    values = (
        b"NaN",
        b"-Infinity",
        b'"\xff\xfe"',
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b"1e999",
        b"9" * 5_000,
        b"[" * 30_000 + b"]" * 30_000,
    )
    bodies = [b"{", b"[]", b"null", b"5", b"\xff\xfe{\x00}\x00", *(b'{"data": %s}' % each for each in values)]
    # The form of another site can send these without asking the browser first.
    forms = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    for request in [site.valid(operation) for operation in OPERATIONS if operation.has_body]:
        for raw in bodies:
            problem(site.ask(request, raw), 400, "malformed")
        for kind in forms:
            problem(site.ask(request, b"{}", Content_Type=kind), 415, "unsupported-media-type")
        problem(site.ask(request, b'{"text": "' + b"a" * 300_000 + b'"}'), 413, "too-large")
    assert site.stored() == before


def test_no_address_answers_without_a_login_a_token_or_redis(site: Site) -> None:
    before = site.stored()
    client = AsyncClient(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user("joe"))

    for operation in OPERATIONS:
        request = site.valid(operation)
        answer = site.ask(request | {"by": ""})
        problem(answer, 401, "not-authenticated")
        assert answer["WWW-Authenticate"] == "Bearer"
        with redis_at("unix:///nowhere/at-all"):
            answer = site.ask(request)
        if operation.path == "/people":  # which asks the database only
            assert answer.status_code == 200
        else:
            problem(answer, 503, "redis-unavailable")
            assert answer["Retry-After"] == "10"
        if operation.method != "get":
            logged_in = Site(Asker(), site.redis, site.chat, site.mail, site.stack)
            logged_in.asker.client = client
            problem(logged_in.ask(request, Authorization=""), 403, "csrf")
    assert site.stored() == before


def test_a_method_that_is_not_described_is_refused_with_those_that_are(site: Site) -> None:
    before = site.stored()
    for path, item in DESCRIPTION["paths"].items():
        described = {each.upper() for each in METHODS if each in item}
        for method in {*map(str.upper, METHODS), "OPTIONS"} - described:
            answer = site.asker(method, re.sub(r"{\w+}", "1", path[1:]), Authorization="Bearer joe")
            problem(answer, 405, "method-not-allowed")
            head = {"HEAD"} if "GET" in described else set()
            assert set(answer["Allow"].split(", ")) == described | head
    assert site.stored() == before


#: Prepares the site, and returns what is different in the request.
Situation = Callable[[Site, Described], Mapping[str, Any]]


def _not_allowed(site: Site, operation: Described) -> Mapping[str, Any]:
    site.chat.configure(is_open=False)
    return {"by": "jill", **({"member": "joe"} if "member" in operation.fields("path") else {})}


def _muted(site: Site, operation: Described) -> Mapping[str, Any]:
    site.chat.mute("jill")
    return {"by": "jill", **({"seq": 3} if "seq" in operation.fields("path") else {})}


def _blocked(site: Site, operation: Described) -> Mapping[str, Any]:
    site.chat.block("jack")
    Mailbox("jill").block("joe")
    return {}


def _no_message(site: Site, operation: Described) -> Mapping[str, Any]:
    return {name: 99 for name in ("seq", "id") if name in operation.fields("path")} or {"reply_to": 99}


def _taken(site: Site, operation: Described) -> Mapping[str, Any]:
    Chat.create("jack", id=sha256(b"joe\0k").hexdigest()[:32])
    return {"Idempotency-Key": "k"}


def _gone(site: Site, operation: Described) -> Mapping[str, Any]:
    site.chat.configure(is_open=False)
    if str(operation) != "createChat":
        return {"by": "stranger"}
    made = Chat(json.loads(site.ask(site.valid(operation) | {"Idempotency-Key": "k"}).content)["id"])
    for each in made.members():
        made.leave(each.user)
    return {"Idempotency-Key": "k"}


def _reused(site: Site, operation: Described) -> Mapping[str, Any]:
    site.ask(site.valid(operation) | {"Idempotency-Key": "k", "text": "other"})
    return {"Idempotency-Key": "k"}


def _too_many_chats(site: Site, operation: Described) -> Mapping[str, Any]:
    site.change(MAX_CHATS_CREATED=1, MAX_CHATS_JOINED=1)
    Chat.create("jack")
    return {}


def _too_many_members(site: Site, operation: Described) -> Mapping[str, Any]:
    site.chat.configure(max_members=2)
    return {"members": [str(number) for number in range(1_000)]} if operation.path == "/chats" else {}


def _too_many_blocked(site: Site, operation: Described) -> Mapping[str, Any]:
    for key in (MailboxKeys("joe").blocked, ChatKeys(CHAT).blocked):
        site.redis.hset(key, mapping={str(number): 1 for number in range(10_000)})
    return {"block": "true"} if operation.path.startswith("/chats") else {}


def _too_fast(site: Site, operation: Described) -> Mapping[str, Any]:
    site.change(CHAT_CREATE_LIMIT=1, CHAT_ADD_LIMIT=1)
    site.chat.configure(rate_limit=1, rate_period=100)
    site.chat.send("joe", "hello")
    Chat.create("joe", by="joe", members=["jill"])
    Chat.create("jack", by="jack", members=["jill"])
    impatient = RateLimit("tests", "1/h")
    impatient.acquire("joe")
    limit(site.stack.enter_context(pytest.MonkeyPatch.context()), impatient)
    return {"q": "he"} if str(operation) == "listMembers" else {}


def _full(site: Site, operation: Described) -> Mapping[str, Any]:
    for _ in range(999):
        Mailbox("jill").push("jack", "hello")
    return {}


SITUATIONS: dict[str, Situation] = {
    "not-allowed": _not_allowed,
    "muted": _muted,
    "blocked": _blocked,
    "chat-closed": lambda site, operation: site.chat.close() or {},
    "chat-not-found": _gone,
    "book-not-found": lambda site, operation: {"by": "stranger"},
    "message-not-found": _no_message,
    "member-not-found": lambda site, operation: {"member": "jack"},
    "person-not-found": lambda site, operation: {"recipient": "nobody"},
    "chat-exists": _taken,
    "idempotency-key-reused": _reused,
    "too-many-chats": _too_many_chats,
    "too-many-members": _too_many_members,
    "too-many-blocked": _too_many_blocked,
    "too-fast": _too_fast,
    "mailbox-full": _full,
    "invalid-cursor": lambda site, operation: {"cursor": "x"},
    "invalid-message": lambda site, operation: (
        {"emoji": "x"} if str(operation) == "react" else {"text": "x" * 4_001}
    ),
}
DECLARED = [(operation, kind) for operation in OPERATIONS for kind in sorted(operation.kinds - GENERAL)]


@pytest.mark.parametrize(("operation", "kind"), DECLARED, ids=str)
def test_each_refusal_that_is_declared_happens(site: Site, operation: Described, kind: str) -> None:
    request = site.valid(operation) | SITUATIONS[kind](site, operation)
    before = site.stored()

    answer = site.ask(request)

    problem(answer, KINDS[kind].status, kind)
    assert ("Retry-After" in answer.headers) == (kind == "too-fast")
    assert site.stored() == before


#: Other valid values of requests, which take another way.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "changeChat": [{"is_open": True}],
    "listMessages": [{"after": 0}, {"around": 1}],
    "listMembers": [{"q": "j"}],
    "changeMember": [{"member": "joe", "muted_for": 5}, {"muted_for": None}],
    "removeMember": [{"block": "true"}, {"member": "stranger"}],
    "addMembers": [{"users": ["nobody"]}],
}


def test_a_stranger_cannot_tell_a_chat_from_none(site: Site) -> None:
    site.chat.configure(is_open=False)
    before = site.stored()
    for operation in [each for each in OPERATIONS if "chat_id" in each.fields("path")]:
        request = site.valid(operation) | {"by": "stranger"}
        for value in ({}, *VARIANTS.get(str(operation), ())):
            answers = [site.ask(request | value | {"chat_id": id}) for id in (CHAT, "none")]
            there, none = (problem(answer, 404, "chat-not-found") for answer in answers)
            assert {**there, "detail": there["detail"].replace(CHAT, "none")} == none
        for id in ("-1", "x" * 65, "a b", "{a}", "\0"):
            problem(site.ask(request | {"by": "joe", "chat_id": id}), 404, "chat-not-found")
    assert site.stored() == before


@pytest.mark.parametrize("name", ["x" * 501, "x" * 5_000, "\0", "\U0001f600" * 501, "\ud800"])
def test_no_name_in_an_address_is_a_server_error(site: Site, name: str) -> None:
    for operation in OPERATIONS:
        for place in ("path", "query"):
            for field in operation.fields(place):
                answer = site.ask(site.valid(operation) | {field: name})
                assert answer.status_code < 500, (operation, field)


ROOT = Path(__file__).resolve().parents[2]


def test_the_file_holds_what_the_endpoints_declare() -> None:
    out = StringIO()
    with override("de"):  # the description is English in every language
        call_command("openapi", stdout=out)

    assert openapi.FILE.read_text(encoding="utf-8") == out.getvalue(), (
        "Run manage.py openapi, and store its output."
    )


def test_exactly_the_addresses_and_methods_that_exist_are_described() -> None:
    def described(route: str) -> str:
        return "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route)

    served = {
        (described(str(each.pattern)), method)
        for each in chain.from_iterable(getattr(each, "url_patterns", [each]) for each in urlpatterns)
        if each.name not in (None, "api-problem")
        for method in map(str.lower, each.callback.endpoint.handlers)
        if method != "head"
    }
    assert served == {(each.path, each.method) for each in OPERATIONS}


def test_the_documentation_lists_exactly_the_types_of_problems() -> None:
    errors = (ROOT / "docs" / "http-api.md").read_text(encoding="utf-8").partition("## Errors")[2]
    table = {
        (int(status), kind)
        for line in re.findall(r"^\| [0-9, ]+ \|.*", errors, re.MULTILINE)
        for status, kind in zip(cycle(re.findall(r"\b\d{3}\b", line)), re.findall(r"`([a-z-]+)`", line))
    }

    assert table == {(kind.status, name) for name, kind in KINDS.items()}
