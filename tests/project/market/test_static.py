"""Static files, answered by the site itself, by WSGI and by ASGI alike."""

from __future__ import annotations

import asyncio

from django.test import AsyncClient, Client

CSS = "/static/market/market.css"


def test_a_static_file_is_served_with_its_type(client: Client) -> None:
    response = client.get(CSS)

    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/css")
    assert b"--accent" in response.content


def test_under_asgi_it_is_the_same() -> None:
    response = asyncio.run(AsyncClient().get(CSS))

    assert response.status_code == 200
    assert b"--accent" in response.content


def test_a_browser_that_has_it_gets_it_no_second_time(client: Client) -> None:
    fresh = client.get(CSS)

    response = client.get(CSS, headers={"If-Modified-Since": fresh["Last-Modified"]})

    assert response.status_code == 304
    assert response.content == b""
    assert "Content-Type" not in response


def test_a_head_request_gets_no_body(client: Client) -> None:
    response = client.head(CSS)

    assert response.content == b""
    assert int(response["Content-Length"]) > 0


def test_a_part_of_a_file_can_be_asked_for(client: Client) -> None:
    response = client.get(CSS, headers={"Range": "bytes=0-9"})

    assert response.status_code == 206
    assert len(response.content) == 10


def test_a_missing_static_file_is_not_found(client: Client) -> None:
    assert client.get("/static/market/nothing.css").status_code == 404


def test_a_browser_that_asks_for_an_icon_finds_one(client: Client) -> None:
    response = client.get("/favicon.ico", follow=True)

    assert response["Content-Type"] == "image/svg+xml"
