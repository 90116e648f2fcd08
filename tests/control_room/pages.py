"""Pages as a reader has them: text without tags, messages, and what the log says."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import urlencode

from django.contrib.admin.models import LogEntry
from django.http import HttpResponse
from django.test import Client
from django.utils.html import strip_tags

CONTENT = re.compile(r'<div id="live".*</div>', re.DOTALL)
FRAMELESS = {"X-Live": "1"}


def words(response: HttpResponse) -> str:
    return " ".join(unescape(strip_tags(response.text.replace("</dt>", "</dt> "))).split())


def text_of(client: Client, root: str, page: str = "", **query: object) -> str:
    """The page without the frame around it."""
    response = client.get(f"{root}{page}", query, headers=FRAMELESS)
    assert response.status_code == 200
    return words(response)


def rows_of(client: Client, root: str, page: str = "", *, table: int = 0, **query: object) -> list[str]:
    """The rows of a table of the page, the first by default."""
    html = client.get(f"{root}{page}", query, headers=FRAMELESS).text
    body = re.findall(r"<tbody>(.*?)</tbody>", html, re.DOTALL)[table]
    return [" ".join(unescape(strip_tags(row)).split()) for row in re.findall("<tr.*?</tr>", body, re.DOTALL)]


def done(client: Client, url: str, **data: object) -> list[str]:
    """The messages after a POST."""
    response = client.post(url, data, follow=True)
    assert response.status_code == 200
    return [str(message) for message in response.context["messages"]]


def logged() -> list[str]:
    return [entry.change_message for entry in LogEntry.objects.order_by("pk")]


def addresses(root: str) -> Callable[..., str]:
    """of("release", key="a") is a URL below *root*."""
    return lambda page, **query: f"{root}{page}/?{urlencode(query)}"
