"""The overview: who sees what, what it costs, the health of Redis; the search; and the admin's index."""

import re
from collections import Counter as Commands
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.utils.html import strip_tags

from components import models
from components.control_room.site import ControlRoomSite
from components.kit.keyspace import bucket
from components.overview.nodes import Node, lines_of, nodes
from components.reports import reports
from components.services.chat import Chat
from components.services.counters import Counter
from components.services.logs import note_job
from components.services.mailboxes import Mailbox
from project.market.tasks import send_sold_email
from tests.control_room.every_page import ADMINS, one_periodic_task, query  # noqa: F401
from tests.control_room.pages import FRAMELESS, round_trips, rows_of, trips, words
from tests.locks.admin import holdings
from tests.overview.test_cards import ROOT, html_of, lines, lines_of_redis, tiles
from tests.overview.test_cards import nodes as nodes_of
from tests.queues.admin import scene
from tests.queues.admin.scene import HOURLY
from tests.support.full import configured
from tests.support.monitoring import sent_to
from tests.support.rows import cache


def test_people_see_the_cards_and_lines_of_services_on_this_site_that_they_may_view(
    redis, staff, monkeypatch
):
    scene.dead("mail")
    outsider, client = staff("view_overview"), staff("view_overview", "view_queue")

    assert tiles(outsider) == {}
    assert lines(outsider) == []
    assert list(tiles(client)) == ["Queues"]
    monkeypatch.delitem(admin.site._registry, models.Queue)
    assert tiles(client) == {}


def test_it_is_one_round_trip_however_much_there_is(redis, staff, redis_server):
    client = staff("view_overview", *(f"view_{model.__name__.lower()}" for model in reports()))

    def cost() -> tuple[int, Commands[str], int]:
        size = len(html_of(client))  # opens connections, and learns the names of log jobs
        with sent_to(redis_server) as commands:
            html_of(client)
        return round_trips(client, ROOT), Commands(commands), size

    scene.dead("mail")
    note_job("default")
    trips, few, small = cost()
    for number in range(300):
        scene.ready(f"queue-{number}")
    cache().schedule_many(dict.fromkeys(range(2000), 60))
    for number in range(100):
        Chat.create("joe", id=f"chat-{number}")
        holdings.held(f"lock-{number}")
    trips_of_many, many, large = cost()

    assert trips == trips_of_many == 1
    assert many == few
    assert {"KEYS", "SCAN", "SSCAN", "HSCAN", "ZSCAN"}.isdisjoint(many)
    assert large < small + 6_000


def test_sparklines_are_for_those_who_may_view_counters(redis, staff, settings, redis_server):
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    Counter("tasks:successful").update(3)
    both, one = staff("view_overview", "view_queue", "view_counter"), staff("view_overview", "view_queue")

    assert "3 tasks succeeded in the last 2 h" in tiles(both)["Queues"]
    assert 'class="sparkline"' in html_of(both)
    assert round_trips(both, ROOT) == 1
    assert "sparkline" not in html_of(one)

    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": False}
    assert "sparkline" not in html_of(both)
    assert "succeeded" not in tiles(both)["Queues"]


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(redis, staff):
    redis.set(f"components:rows:{{{bucket('a')}}}:schedule", "something else")
    client = staff("view_overview", "view_queue", "view_cachedrow")

    assert "Not known Cached rows These figures could not be read." in tiles(client)["Cached rows"]
    assert "0 tasks wait" in tiles(client)["Queues"]


def test_a_card_that_fails_before_it_asks_leaves_every_page_standing(redis, staff, monkeypatch):
    def card():
        raise ImportError("shop.tasks")
        yield

    monkeypatch.setattr("components.services.queues.report.card", card)
    client = staff("view_overview", "view_queue", "view_lock")

    assert "Not known Queues These figures could not be read." in tiles(client)["Queues"]
    assert client.get("/admin/components/lock/").status_code == 200


QUIET = {"aof_enabled": 1, "maxmemory_policy": "noeviction", "used_memory": 1_000}


def said(**info: object) -> list[str]:
    return [line.said for line in Node("here", {**QUIET, **info}).lines]


def test_settings_that_endanger_data(redis, staff):
    reader = staff("view_overview")
    before = lines_of_redis(reader)
    with configured(redis, **{"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"}):
        [line] = [line for line in lines_of_redis(reader) if line not in before]

    assert line.startswith("Warning Redis ")
    assert "maxmemory-policy is allkeys-lru: under memory pressure Redis will delete tasks." in line
    assert line.endswith("Set it to noeviction. Health of Redis")
    assert lines_of_redis(reader) == before


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (
            {"role": "slave", "master_host": "10.0.0.1"},
            "here is a read-only replica of 10.0.0.1 and takes no writes.",
        ),
        (
            {"rdb_last_bgsave_status": "err"},
            "here could not save its data (rdb_last_bgsave_status), and a crash",
        ),
        ({"maxmemory": 1_000}, "here is full ("),
        ({"maxmemory": 1_100}, "here uses more than nine tenths of its memory ("),
        ({"total_system_memory": 1_100}, "here uses more than nine tenths of its memory ("),
        (
            {"aof_enabled": 0},
            "here: appendonly is off: a crash of Redis loses all changes since the last snapshot.",
        ),
    ],
)
def test_what_needs_attention(info, text):
    [found] = said(**info)

    assert text in found
    assert said() == []


def test_the_facts_of_a_node():
    info = {**QUIET, "used_memory": 2_048, "maxmemory": 4_096, "evicted_keys": 6, "uptime_in_seconds": 3_725}
    known = [text.replace("\xa0", " ") for _name, text in Node("here", info, took=0.002).facts]

    assert known[:2] + known[4:6] == ["2 ms", "2.0 KB of 4.0 KB", "6", "each change (append-only file)"]
    assert known[-1] == "1 h 2 min"
    assert len([*Node("here", {}).facts]) == 1


def test_many_nodes_take_no_more_room_than_a_few():
    found = nodes({f"node-{number:02}": {"aof_enabled": number % 2} for number in range(60)}, {})

    assert [node.state for node in found[:30]] == ["warning"] * 30
    assert len(lines_of(found)) == 13
    assert lines_of(found)[-1].said == "18 more nodes of Redis need attention."


def test_a_server_that_does_not_permit_info(redis, staff):
    reader = staff("view_overview")
    redis.execute_command("ACL", "SETUSER", "default", "-info")
    try:
        [text], found = nodes_of(reader).values(), lines_of_redis(reader)
    finally:
        redis.execute_command("ACL", "SETUSER", "default", "+info")

    assert "The server does not permit INFO" in text
    assert found == []


def rows(client: Client, path: str = "/admin/") -> list[str]:
    """The models of the control room as the index lists them, without the links beside them."""
    group = re.search(r'<div class="app-components.*?</table>', client.get(path).text, re.DOTALL)
    assert group
    heads = re.findall(r'<th scope="row".*?</th>', group[0], re.DOTALL)
    return [" ".join(unescape(strip_tags(head)).split()) for head in heads]


def test_the_demo_has_the_site_whose_index_begins_with_the_control_room(redis, staff):
    assert isinstance(admin.site, ControlRoomSite)
    client = staff("view_overview", "view_lock", "view_addressbook", "view_user")

    page = client.get("/admin/").text

    assert "Control room</a>" in page
    assert page.index('class="app-components') < page.index('class="app-auth')
    assert rows(client) == ["Overview"]
    assert rows(staff("view_lock", "view_addressbook")) == ["Address books", "Locks"]


def test_the_overview_is_the_index_of_the_app_and_on_another_site_its_first(redis, staff):
    assert staff("view_overview").get("/admin/components/").url == "/admin/components/overview/"
    assert staff("view_lock").get("/admin/components/").status_code == 200
    assert staff("view_user").get("/admin/components/").status_code == 404
    client = staff("view_overview", "view_lock", "view_addressbook")
    assert rows(client, "/operations/components/") == ["Overview"]


def test_the_links_above_each_page_count_what_needs_attention_of_what_one_may_view(redis, staff):
    def links(client: Client, page: str, **headers: str) -> dict[str, str]:
        [found] = re.findall(
            r"<nav class=\"navigation.*?</nav>", client.get(page, headers=headers).text, re.DOTALL
        )
        texts = re.findall(r'<a href="([^"]*)"[^>]*>(.*?)</a>', found)
        return {address: strip_tags(text) for address, text in texts}

    scene.dead("mail")
    seen, other = staff("view_overview", "view_queue", "view_lock"), staff("view_lock", "view_counter")

    for headers in ({}, FRAMELESS):
        found = links(seen, "/admin/components/lock/", **headers)
        assert found["/admin/components/queue/"] == "Queues 1 needs attention"
        assert found["/admin/components/queue/workers/"] == "Workers"
        assert [*found][::5] == ["/admin/components/overview/", "/admin/components/overview/log/"]
        assert all(seen.get(address).status_code == 200 for address in found)
    assert [*links(other, "/admin/components/lock/").values()] == ["Locks", "Counters"]


def test_the_history_says_who_did_what_of_what_one_may_view(redis, staff):
    clerk = staff("view_queue", "change_queue", "view_overview")
    clerk.post("/admin/components/queue/pause/?alias=default&queue=mail")
    path, reader = f"{ROOT}log/", staff("view_overview", "view_queue")

    [said] = rows_of(reader, path)
    assert re.search(r"staff .* Paused the queue mail .* default/mail queue$", said)
    assert rows_of(reader, path, q="PAUSED THE") == [said]
    assert "Paused" not in rows_of(reader, path, q="resumed")[0]
    assert "Paused" not in rows_of(staff("view_overview", "view_lock"), path)[0]


FIND = "/admin/components/overview/find/"
JSON = {"Accept": "application/json"}


@pytest.fixture
def everybody(staff):
    return staff(*(f"view_{model}" for model in ADMINS), "view_user")


def found(client, text):
    """What is found: kind, name and address of each."""
    answer = client.get(FIND, {"q": text}, headers=JSON)
    assert answer.status_code == 200
    return [(hit["kind"], hit["name"], hit["url"]) for hit in answer.json()["hits"]]


def names(client, text):
    return [(kind, name) for kind, name, _url in found(client, text)]


FOUND = {
    "mai": ("Queue", "mail"),
    "MAIL": ("Queue", "mail"),
    "sweep": ("Periodic task", HOURLY.name),
    "item:4": ("Lock", "item:42"),
    "api": ("Semaphore", "api"),
    "guild": ("Chat", "Lantern Keepers (guild:7)"),
    "keepers": ("Chat", "Lantern Keepers (guild:7)"),
    "jac": ("Mailbox", "jack"),
    "market.it": ("Address book", "market.item"),
    "hit": ("Counter", "hits"),
    "item": ("Cached model", "items"),
    "items:1": ("Cached row", "items:1"),
    "def": ("Log job", "default"),
    "staff": ("User", "staff"),
    "semaph": ("Page", "Semaphores"),
}


def test_a_thing_of_each_kind_is_found_and_its_page_opens(everybody, query):  # noqa: F811
    Counter("hits").update(1)
    User.objects.create_user("staff")
    worker = scene.worker("mail").id

    for text, expected in {**FOUND, worker[:-2]: ("Worker", worker)}.items():
        hits = {(kind, name): url for kind, name, url in found(everybody, text)}
        assert expected in hits
        assert everybody.get(hits[expected]).status_code == 200


def test_tasks_are_found_by_their_id_and_by_the_name_of_what_they_run(everybody, redis):
    task_id, name = scene.dead("mail"), send_sold_email.module_path
    wanted = {"alias": "default", "queue": "mail", "task": name}

    [(kind, found_id, url)] = found(everybody, task_id)

    assert (kind, found_id) == ("Task", task_id)
    assert f"Task {task_id}" in words(everybody.get(url))
    assert found(everybody, "sold_em") == [
        ("Tasks by name", name, f"/admin/components/queue/tasks/?{urlencode(wanted)}")
    ]


def test_nothing_is_found_of_what_one_may_not_view(staff, query):  # noqa: F811
    Counter("hits").update(1)
    User.objects.create_user("staff")
    for model in set(ADMINS) - {"overview"}:
        some = staff("view_overview", *(f"view_{each}" for each in ADMINS if each != model))
        for text in FOUND:
            urls = [url for _kind, _name, url in found(some, text)]
            assert not [url for url in urls if url.startswith(f"/admin/components/{model}/")], text
    assert ("User", "staff") not in names(some, "staff")


def test_without_the_right_to_the_overview_there_is_no_search(staff, redis):
    for client in (staff(), staff("view_queue")):
        assert client.get(FIND).status_code == 403
        assert "data-finder" not in client.get("/admin/components/queue/").text
    assert Client().get(FIND).status_code == 302


def test_a_search_costs_one_round_trip_however_much_there_is(everybody, redis):
    for number in range(200):
        Mailbox(f"box {number}").push("joe", "hello")
    with trips() as made:
        hits = found(everybody, "1")

    assert len(made) == 1
    assert sum(kind == "Mailbox" for kind, _name, _url in hits) == 5


def test_the_exact_name_is_first_and_then_those_that_begin_with_the_text(everybody, redis):
    for name in ("a jack", "jackdaw", "jack", "jackpot"):
        Mailbox(name).push("joe", "hello")

    User.objects.create_user("jackson")
    scene.dead("jack")

    hits = names(everybody, "jack")

    assert hits[:2] == [("Queue", "jack"), ("Mailbox", "jack")]
    assert [name for kind, name in hits if kind == "Mailbox"] == ["jack", "jackdaw", "jackpot", "a jack"]


@pytest.mark.parametrize(
    "text", ["%", "*", "[a", "\\", "a.b", "<b>", "é", "\n", "x" * 3_000, "\0", "{05}", "%s"]
)
def test_any_text_is_looked_for_as_it_is(everybody, redis, text):
    Mailbox("harmless").push("joe", "hello")
    Mailbox("100% <b>é</b>").push("joe", "hello")

    mailboxes = [name for kind, name in names(everybody, text) if kind == "Mailbox"]

    stripped = text.strip()
    assert mailboxes == [name for name in ("100% <b>é</b>",) if stripped and stripped in name]
