"""Pages as a reader has them: text without tags, messages, and what the log says."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.http import HttpResponse
from django.test import Client
from django.utils.html import strip_tags
from redis.connection import AbstractConnection

CONTENT = re.compile(r'<div id="live".*</div>', re.DOTALL)
FRAMELESS = {"X-Live": "1"}
DASH = "\N{EN DASH}"


def words(response: HttpResponse) -> str:
    return words_in(response.text)


def words_in(html: str) -> str:
    return " ".join(unescape(strip_tags(html.replace("</dt>", "</dt> "))).split())


def text_of(client: Client, root: str, page: str = "", **query: object) -> str:
    """The page without the frame around it."""
    response = client.get(f"{root}{page}", query, headers=FRAMELESS)
    assert response.status_code == 200
    found = CONTENT.search(response.text)
    return words_in(found[0] if found else response.text)


def texts_below(root: str) -> Callable[..., str]:
    """of(client, "lock/", key="a") is the text of that page below *root*."""
    return lambda client, page="", /, **query: text_of(client, root, page, **query)


def rows_of(client: Client, root: str, page: str = "", *, table: int = 0, **query: object) -> list[str]:
    """The rows of a table of the page, the first by default."""
    html = client.get(f"{root}{page}", query, headers=FRAMELESS).text
    body = re.findall(r"<tbody[^>]*>(.*?)</tbody>", html, re.DOTALL)[table]
    return [" ".join(unescape(strip_tags(row)).split()) for row in re.findall("<tr.*?</tr>", body, re.DOTALL)]


def done(client: Client, url: str, **data: object) -> list[str]:
    response = client.post(url, data, follow=True)
    assert response.status_code == 200
    return [str(message) for message in response.context["messages"]]


def logged() -> list[str]:
    return [entry.change_message for entry in LogEntry.objects.order_by("pk")]


def addresses(root: str) -> Callable[..., str]:
    """of("release", key="a") is a URL below *root*."""
    return lambda page, **query: f"{root}{page}/?{urlencode(query)}"


@contextmanager
def trips() -> Iterator[list[object]]:
    """What is written to Redis at once, and waited for, is one round trip."""
    made: list[object] = []
    send = AbstractConnection.send_packed_command

    def sent(self, command, *args, **kwargs):
        made.append(command)
        return send(self, command, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AbstractConnection, "send_packed_command", sent)
        yield made


def round_trips(client: Client, address: str, query: dict[str, str] | None = None) -> int:
    with trips() as made:
        assert client.get(address, query).status_code == 200
    return len(made)
