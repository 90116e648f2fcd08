"""Live refresh by server-sent events, in servers of their own: rights, outages, places, and the end of a server."""

from __future__ import annotations

import signal

import pytest

from components.embedded import EmbeddedServer
from components.testing import empty
from tests.control_room.serving import SERVERS, Site, events
from tests.control_room.test_live import assembled, html
from tests.queues.admin import scene

pytestmark = pytest.mark.slow

ROOT = "/admin/components/queue/"
TASKS = f"{ROOT}tasks/?alias=default&queue=mail"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with EmbeddedServer(tmp_path_factory.mktemp("redis"), appendonly=False) as server:
        yield server


@pytest.fixture(scope="module")
def made(tmp_path_factory, server):
    """The site; tests that take something from an admin have one of their own."""
    site = Site(tmp_path_factory.mktemp("site"), server.url, ("admin", "admin demoted", "admin logged out"))
    yield site
    site.close()


@pytest.fixture
def site(made, server):
    with empty(server):
        yield made
        made.kill()


@pytest.fixture(params=SERVERS)
def running(site, request):
    site.start(request.param)
    return site


@pytest.fixture
def uvicorn(site):
    site.start("uvicorn")
    return site


def test_a_stream_sends_what_has_changed_until_the_reader_leaves(running):
    for number in range(20):
        scene.dead(f"queue {number}")
    answer = running.ask("admin", ROOT)
    seen = events(answer)

    event, first = next(seen)
    scene.dead("another")
    second = next(data for event, data in seen if event == "parts")
    answer.close()

    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert answer.headers["Content-Encoding"] == "gzip"
    assert event == "parts"
    pieces = assembled(first)
    assert html(assembled(second, pieces)).count("<tr") == html(pieces).count("<tr") + 1
    assert len(html([pair for pair in second if isinstance(pair[0], str)])) < len(html(pieces)) / 2


def test_a_stream_ends_when_its_reader_may_not_see_the_page_any_more(uvicorn):
    seen = events(uvicorn.ask("admin demoted", TASKS))
    assert next(seen)[0] == "parts"

    uvicorn.run("User.objects.filter(username='admin demoted').update(is_superuser=False)")

    assert [event for event, _data in seen if event != "same"] == ["gone"]
    assert uvicorn.ask("admin demoted", TASKS).status_code == 403


def test_a_stream_ends_with_its_session(uvicorn):
    seen = events(uvicorn.ask("admin logged out", TASKS))
    assert next(seen)[0] == "parts"

    uvicorn.end_session("admin logged out")

    assert [event for event, _data in seen if event != "same"] == ["gone"]


def test_a_stream_says_that_redis_is_away_and_goes_on_when_it_is_back(uvicorn, server):
    seen = events(uvicorn.ask("admin", ROOT))
    assert next(seen)[0] == "parts"

    server.stop()
    assert next(event for event, _data in seen if event not in ("parts", "same")) == "away"
    server.start()

    assert next(event for event, _data in seen if event != "away") in ("parts", "same")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_server_that_is_told_to_stop_does_not_wait_for_streams(running, number):
    streams = [events(running.ask("admin", path, **{"X-Live": "60"})) for path in (ROOT, TASKS)]
    assert [next(seen)[0] for seen in streams] == ["parts", "parts"]

    running.stop(number, within=15)

    assert [list(seen) for seen in streams] == [[], []]


def test_a_person_has_few_streams_and_polls_for_further_pages(uvicorn):
    streams = [events(uvicorn.ask("admin", ROOT)) for _ in range(4)]
    assert [next(seen)[0] for seen in streams] == ["parts"] * 4

    further = uvicorn.ask("admin", ROOT)

    assert further.headers["Content-Type"] == "application/json"
    assert [next(seen)[0] for seen in streams] == ["same"] * 4


def test_what_another_site_can_ask_for_is_no_stream_and_not_compressed(uvicorn):
    answer = uvicorn.ask("admin", ROOT, **{"X-Live": None, "X-Live-Parts": None})

    assert answer.headers["Content-Type"].startswith("text/html")
    assert "Content-Encoding" not in answer.headers
