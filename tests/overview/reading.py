"""The overview as a reader has it: the lines about what needs attention, and the cards."""

from __future__ import annotations

import re
from html import unescape

from django.test import Client
from django.utils.html import strip_tags

ROOT = "/admin/components/overview/"
FRAMELESS = {"X-Live": "1"}


def html_of(client: Client) -> str:
    response = client.get(ROOT, headers=FRAMELESS)
    assert response.status_code == 200
    return response.text


def lines(client: Client) -> list[str]:
    """The lines about services, each with its links."""
    return [line for line in _lines(client) if " Redis: " not in line]


def lines_of_redis(client: Client) -> list[str]:
    """The lines about Redis; the server of the tests has some, since it saves nothing."""
    return [line for line in _lines(client) if " Redis: " in line]


def _lines(client: Client) -> list[str]:
    found = re.findall(r"<li class=\"(?:serious|warning)\".*?</li>", html_of(client), re.DOTALL)
    return [
        _words(re.sub(r'<span class="visually-hidden">.*?</span>', "", line, flags=re.DOTALL))
        for line in found
    ]


def links(client: Client) -> list[str]:
    """The addresses in the lines about services."""
    section = html_of(client).partition("</section>")[0]
    return [unescape(each) for each in re.findall(r'href="([^"#][^"]*)"', section)]


def tiles(client: Client) -> dict[str, str]:
    """The text of the card of each service, by its title."""
    return _tiles(html_of(client).partition('id="redis"')[0])


def nodes(client: Client) -> dict[str, str]:
    """The text of the card of each node, by its name."""
    return _tiles(html_of(client).partition('id="redis"')[2])


def _tiles(html: str) -> dict[str, str]:
    found = re.findall(r"<li class=\"tile.*?</li>", html, re.DOTALL)
    titled = [(re.search(r"<h3>(.*?)</h3>", tile, re.DOTALL), tile) for tile in found]
    return {_words(title[1]): _words(tile) for title, tile in titled if title}


def _words(html: str) -> str:
    return " ".join(unescape(strip_tags(html.replace("</dt>", "</dt> "))).split())
