"""What is said, and to whom, while Redis is away (tests that ask for `redis` have one); and what others wrote."""

import json
import math

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.models import LogEntry
from django.test import AsyncClient, Client

from components.exceptions import RedisRefused, RedisUnavailable, RedisUnsuitable
from components.kit.keyspace import bucket
from components.services.counters import Counter
from components.services.counters.keys import CounterKeys
from components.services.locks import LockReader, lock
from components.services.locks.keys import LockKeys
from components.services.queues import TaskQueue
from components.services.rows import RowCache, member
from components.services.rows.keys import RowKeys
from components.services.semaphores import Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from tests.control_room.every_page import ASKING_REDIS, FORM, NEEDS, PAGES, query_of
from tests.support.rows import SHAPE

pytestmark = pytest.mark.usefixtures("one_periodic_task")


@pytest.fixture(autouse=True)
def _without_templates_of_the_demo(settings):
    settings.TEMPLATES = [{**each, "DIRS": []} for each in settings.TEMPLATES]


def test_every_page_says_that_redis_is_away_and_no_change_is_claimed_or_logged(admin_client, settings):
    """Also in a project that did not install the middleware."""
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if not name.startswith("components.")]
    for page in ASKING_REDIS:
        answer = admin_client.get(PAGES[page] + query_of(page))
        assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "10"), page
        assert "Redis does not answer" in answer.text, page
    for page in NEEDS:
        assert admin_client.post(PAGES[page] + query_of(page), FORM).status_code == 503, page

    assert not LogEntry.objects.exists()
    assert "data-live-unavailable" in answer.text  # it refreshes itself
    assert admin_client.get(PAGES["queue changelist"], headers={"X-Live": "1"}).status_code == 503
    for address in ("/admin/", PAGES["queue history"]):
        assert admin_client.get(address).status_code == 200


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RedisUnavailable, "Redis antwortet nicht."),
        (RedisRefused, "Redis läuft, nimmt zurzeit aber keine Befehle an."),
        (RedisUnsuitable, "Diese Website kann mit dem Redis, das ihre Einstellungen nennen, nicht arbeiten."),
    ],
)
def test_what_the_visitor_should_know_is_in_their_language_and_the_cause_in_english(
    admin_client, monkeypatch, error, said
):
    def count(self):
        raise error("OOM command not allowed.")

    monkeypatch.setattr(LockReader, "count", count)

    page = admin_client.get(PAGES["lock changelist"], headers={"Accept-Language": "de"})

    assert page.status_code == 503
    assert f"<strong>{said}</strong>" in page.text
    assert '<p class="quiet" lang="en">OOM command not allowed.</p>' in page.text


def test_a_visitor_gets_a_plain_page_that_says_nothing_of_the_server_and_the_log_says_it_once(caplog):
    response = Client().get("/view/")

    assert (response.status_code, response["Retry-After"]) == (503, "10")
    assert response["Content-Type"].startswith("text/html")
    assert "nowhere" not in response.text
    assert "no-store" in response["Cache-Control"]
    [record] = caplog.records
    assert (record.name, record.levelname, record.exc_info) == ("components.middleware", "WARNING", None)
    assert "GET /view/: Redis does not answer" in record.getMessage()


@pytest.mark.parametrize(
    ("accept", "is_json"),
    [
        *((each, True) for each in ("application/json", "application/problem+json", "application/*")),
        *((each, False) for each in ("text/html,application/json;q=0.9", "*/*", "image/png", "")),
        ("application/json, text/html;q=0.5", True),
    ],
)
def test_a_client_that_prefers_json_gets_problem_details_and_others_the_page(accept, is_json):
    response = Client().get("/view/", headers={"Accept": accept})

    assert response.status_code == 503
    if is_json:
        problem = json.loads(response.content)
        assert response["Content-Type"] == "application/problem+json"
        assert (problem["status"], problem["type"]) == (503, "urn:components:redis-unavailable")
        assert set(problem) == {"type", "title", "status", "detail"}
    else:
        assert response["Content-Type"].startswith("text/html")


def test_both_are_in_the_language_of_the_visitor():
    german, chinese = {"Accept-Language": "de"}, {"Accept-Language": "zh-CN"}
    page = Client().get("/view/", headers=german)
    problem = Client().get("/view/", headers={"Accept": "application/json", **chinese})

    assert '<html lang="de" dir="ltr">' in page.text
    assert "<h1>Vorübergehend nicht verfügbar</h1>" in page.text
    assert problem.json()["detail"] == "已接收的内容不会丢失。请 10 秒后重试。"
    assert problem.json()["type"] == "urn:components:redis-unavailable"


def test_the_page_needs_no_database(settings):
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.db"

    response = Client(headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}=something"}).get("/view/")

    assert response.status_code == 503


def test_other_errors_are_left_alone(settings):
    client = Client(raise_request_exception=False)
    settings.TASKS = {"default": {"BACKEND": "components.tasks.RedisBackend"}}
    settings.COMPONENTS = {"CACHE": "not there"}

    assert client.get("/view/").status_code == 500


def test_all_is_well_again_when_redis_is_back(redis, admin_client):
    TaskQueue().push("market.tasks.send", queue="mail")

    assert admin_client.get(PAGES["queue changelist"]).status_code == 200
    assert Client().get("/view/").text == "mail"


@pytest.fixture
def own_page(settings, tmp_path):
    """A project with a page of its own, which shows what context processors add."""
    page = tmp_path / "components" / "unavailable.html"
    page.parent.mkdir()
    page.write_text("{{ request.path }}Away, but with a menu", encoding="utf-8")
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}, *settings.TEMPLATES[1:]]
    return settings


@pytest.mark.parametrize("path", ["/view/", "/async-view/"])
def test_a_page_of_the_project_has_the_context_of_the_request(own_page, path):
    response = async_to_sync(AsyncClient().get)(path)

    assert (response.status_code, response.text) == (503, f"{path}Away, but with a menu")


def needs_redis(request):
    TaskQueue().names()
    return {}


def test_a_context_processor_that_needs_redis_does_not_hide_the_page(own_page, caplog):
    options = own_page.TEMPLATES[0]["OPTIONS"]
    processors = [*options["context_processors"], f"{__name__}.needs_redis"]
    own_page.TEMPLATES = [
        {**own_page.TEMPLATES[0], "OPTIONS": {**options, "context_processors": processors}},
        *own_page.TEMPLATES[1:],
    ]

    response = Client().get("/view/")

    assert (response.status_code, response.text) == (503, "Away, but with a menu")
    assert "could not be rendered with the context of the request" in caplog.text


ODD_NAMES = [b"", b"\xff\xfe", b"x" * 2_000, b"a\0b", b"{", b"a/b/c"]
OF_ODD_NAMES = [
    *("lock/", "lock/?q=good", "semaphore/", "semaphore/semaphore/?semaphore=good"),
    *("counter/", "cachedrow/", "cachedrow/model/?model=items", "cachedrow/row/?row=items:good"),
]


@pytest.mark.parametrize("score", [math.inf, -math.inf, 1e300, 1e17])
def test_pages_go_on_where_somebody_else_has_written_odd_names_and_scores(admin_client, redis, score):
    lock("good").acquire()
    semaphore = Semaphore("good", limit=3)
    semaphore.acquire()
    Counter("good:one").update(3)
    RowCache("items", SHAPE).schedule("good", 60)
    row = member("items", "good")
    for key in (
        LockKeys.named("good").held,
        SemaphoreKeys("good").names,
        SemaphoreKeys("good").holders,
        SemaphoreKeys("good").since,
        SemaphoreKeys("good").heavy,
        SemaphoreKeys("good").queue,
        SemaphoreKeys("good").beats,
        CounterKeys(bucket("good:one")).names,
        RowKeys(bucket(row)).schedule,
    ):
        redis.zadd(key, dict.fromkeys(ODD_NAMES, score))
    redis.zadd(RowKeys(bucket(row)).schedule, {row: score})

    for page in OF_ODD_NAMES:
        response = admin_client.get(f"/admin/components/{page}", follow=True)
        assert response.status_code == 200, page
        assert "good" in response.text, page
