"""What the Chats page shows and does, with real chats. Who may see it is tested for all pages at once."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.utils import timezone

from components.formatting import legible
from components.services.chat import Chat, ChatReader, ChatSettings
from components.services.mailboxes import Mailbox
from tests.control_room.pages import DASH, addresses, done, logged, rows_of, texts_below, words
from tests.fixtures.admin import allowed
from tests.support.chats import SECRET, guild

ROOT = "/admin/components/chat/"
AGO = r"[\d:]+ [\d.]+ m?s ago"

url = addresses(ROOT)
page = texts_below(ROOT)

pytestmark = pytest.mark.usefixtures("redis")
viewer = allowed("view_chat")
operator = allowed("change_chat")
remover = allowed("view_chat", "delete_chat", "view_messages_chat")
reader = allowed("view_chat", "view_messages_chat")


def of(verb, **query):
    return url(verb.replace("_", "-"), chat="guild:7", **query)


def members():
    return {member.user: member for member in Chat("guild:7").members()}


def texts():
    return [item.text for item in ChatReader().messages("guild:7").messages if item.event is None]


def events():
    found = (item.event for item in ChatReader().messages("guild:7").messages if item.event)
    return [(str(event.kind), event.by, event.user) for event in found]


# The list, a chat, its messages


def test_chats_are_listed_with_their_size_their_last_message_and_their_state(viewer):
    assert len(rows_of(viewer, ROOT)) == 1  # a sentence
    guild()
    guild("guild:8", title="").close()

    rows = sorted(rows_of(viewer, ROOT))

    assert re.fullmatch(rf"Lantern Keepers guild:7 3 4 \d+\sbytes {AGO} Open", rows[0])
    assert re.fullmatch(rf"guild:8 3 5 \d+\sbytes {AGO} Closed", rows[1])


def test_a_chat_is_found_by_its_whole_id(viewer):
    guild()

    assert viewer.get(ROOT, {"q": " guild:7  "}).url == of("chat")
    for text in ("guild", "Lantern Keepers", "x" * 600, "a\x00b", "../7"):
        assert f"“{legible(text)}”" in words(viewer.get(ROOT, {"q": text}))


def test_a_chat_has_a_page_with_its_members_and_settings(viewer):
    guild()
    Chat("guild:7").configure(history=0, max_age=86_400.0, slow_mode=1.5, is_open=True, max_bytes=1_000_000)

    text = page(viewer, "chat/", chat="guild:7")
    rows = rows_of(viewer, ROOT, "chat/", chat="guild:7")

    assert "Id guild:7 State Open Members 3 Messages and events 5 numbers 1 to 5 " in text
    assert "by joe" in text
    for setting in (
        "Earlier messages that a new member sees 0 ",
        "Messages are deleted after 1 d ",
        "Least time between two messages of a member 1.5 s ",
        "Messages of a member in each period at most 20 ",
        "Anyone may join yes",
        "Bytes kept at most 1,000,000 ",
        "Messages that all have read are deleted after never ",
    ):
        assert setting in text
    assert [row.split()[:2] for row in rows] == [["joe", "Owner"], ["jack", "Member"], ["jill", "Member"]]
    assert re.fullmatch(rf"jill Member {AGO} 2 2 1 {DASH}", rows[2])


def test_permission_to_view_shows_no_message_texts(viewer, operator):
    guild()
    for client in (viewer, operator):
        for address, status in ((ROOT, 200), (of("chat"), 200), (of("messages"), 403)):
            response = client.get(address)
            assert response.status_code == status
            for hidden in (SECRET, "pictures.example", f'href="{ROOT}messages/'):
                assert hidden not in response.text
    assert viewer.get(of("messages", q="treasure")).status_code == 403
    assert not LogEntry.objects.exists()


def test_messages_and_events_are_shown_in_their_order_to_who_may_read_them(reader):
    chat = guild()
    chat.rename("Mill Seekers", by="joe")
    chat.kick("jack")
    first = next(each.seq for each in chat.history("joe").messages if each.text == "welcome")
    chat.edit("joe", first, "Welcome")
    chat.react("joe", first, "👍")
    chat.send("joe", "Again", reply_to=first)

    rows = rows_of(reader, ROOT, "messages/", chat="guild:7")

    assert [int(row.split()[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert all(part in rows[1] for part in ("joe Welcome", "edited", "👍 1"))
    assert re.fullmatch(rf"3 jack {SECRET} mentions jill {AGO}", rows[2])
    assert re.fullmatch(rf'4 joe look {{"picture": "https://pictures.example/mill.png"}} {AGO}', rows[3])
    assert " joe renamed the chat: Mill Seekers " in rows[4]
    assert " The system removed jack " in rows[5]
    assert f"replies to message {first}" in rows[6]
    assert f'href="{of("messages")}"' in reader.get(of("chat")).text


def test_a_long_history_has_pages_that_hold_each_message_once(reader):
    chat = Chat.create("joe", id="guild:7", settings=ChatSettings(rate_limit=0))
    for number in range(130):
        chat.send("joe", f"message {number}")
    address, seen = of("messages"), []

    while address:
        html = reader.get(address).text
        seen[:0] = re.findall(r">(message \d+)<", html)
        older = re.search(r'<a href="([^"]*)" rel="prev">', html)
        address = older and older[1].replace("&amp;", "&")

    assert seen == [f"message {number}" for number in range(130)]


def test_a_place_in_the_history_that_is_none_is_the_newest(reader):
    guild()
    places = {"1": 0, "0": 0, "3": 1, "": 3, "-1": 3, "x": 3, "9" * 500: 3, "\N{SUPERSCRIPT TWO}": 3}
    for before, shown in places.items():
        text = page(reader, "messages/", chat="guild:7", before=before)
        assert sum(each in text for each in ("welcome", SECRET, "look")) == shown


def test_people_go_by_their_names_with_the_id_beside_them(staff):
    client = staff("change_chat", "view_messages_chat")
    joe, jill = (User.objects.create_user(name) for name in ("joe", "jill"))
    chat = Chat.create(str(joe.pk), members=[str(jill.pk), "999999"], text="hello", id="guild:7")
    chat.send(str(jill.pk), "hello", mentions=[str(joe.pk)])

    people = rows_of(client, ROOT, "chat/", chat="guild:7")
    said = rows_of(client, ROOT, "messages/", chat="guild:7")
    kicked = done(client, of("kick", user=jill.pk))

    assert [row.partition(" M")[0] for row in people[1:]] == [f"jill {jill.pk}", "999999"]
    assert people[0].startswith(f"joe {joe.pk} Owner")
    assert f"by joe ({joe.pk})" in page(client, "chat/", chat="guild:7")
    assert f" jill {jill.pk} hello mentions joe ({joe.pk}) " in said[-1]
    assert f"jill ({jill.pk})" in kicked[0]


@pytest.mark.parametrize(
    ("verb", "user", "event"),
    [
        ("close", "", ("closed", "", "")),
        ("reopen", "", ("reopened", "", "")),
        ("kick", "jack", ("kicked", "", "jack")),
        ("block", "jack", ("blocked", "", "jack")),
        ("unblock", "jenny", ("unblocked", "", "jenny")),
        ("unmute", "jill", ("unmuted", "", "jill")),
    ],
)
def test_a_verb_is_done_once_and_logged(operator, verb, user, event):
    chat = guild()
    chat.block("jenny")
    chat.mute("jill")
    if verb == "reopen":
        chat.close()
    before = events()

    asked = words(operator.get(of(verb, user=user)))
    told = done(operator, of(verb, user=user))
    again = done(operator, of(verb, user=user))

    assert user in asked
    assert "Lantern Keepers" in told[0]
    assert user in told[0]
    assert logged() == told
    assert (len(again), again == told) == (1, False)
    assert events() == [*before, event]


def test_anybody_can_be_blocked_in_advance_and_is_listed(operator):
    guild()

    done(operator, of("block", user="jenny"))

    assert set(Chat("guild:7").blocked()) == {"jenny"}
    [row] = rows_of(operator, ROOT, "chat/", table=1, chat="guild:7")
    assert re.fullmatch(rf"jenny {AGO} Unblock…", row)


@pytest.mark.parametrize(("seconds", "span"), [("600", 600), ("86400", 86_400), ("good", None)])
def test_a_member_is_muted_for_a_while(operator, seconds, span):
    guild()

    told = done(operator, of("mute", user="jack"), seconds=seconds)

    until = members()["jack"].muted_until
    if span is None:
        assert until == datetime.max.replace(tzinfo=UTC)
    else:
        assert timedelta(0) <= datetime.now(UTC) + timedelta(seconds=span) - until < timedelta(minutes=1)
    assert logged() == told
    assert 'aria-label="Unmute: jack"' in operator.get(of("chat")).text


@pytest.mark.parametrize("data", [{"seconds": "1"}, {"seconds": "-600"}, {"seconds": "x"}, {}])
def test_a_time_that_is_not_offered_mutes_nobody(operator, data):
    guild()

    operator.post(of("mute", user="jack"), data)

    assert members()["jack"].muted_until is None
    assert logged() == []


def test_a_history_is_trimmed_and_it_is_logged_how_much_went(remover):
    guild()

    for before in ("", "0", "x", "9" * 5000):
        assert 'aria-invalid="true"' in remover.post(of("trim"), {"before": before}).text
    assert logged() == []
    trimmed = done(remover, of("trim"), before="4")
    again = done(remover, of("trim"), before="4")

    assert re.search(r"\b3\b.*\b4\b", trimmed[0])
    assert trimmed == logged() != again
    assert texts() == ["look"]
    done(remover, of("trim"), before=str(10**18))
    assert texts() == []


def test_one_message_is_deleted_and_neither_page_nor_log_repeats_its_text(remover):
    guild()
    address = of("delete_message", seq=3)

    asked = words(remover.get(address))
    deleted = done(remover, address)
    again = done(remover, address)

    assert SECRET not in asked + deleted[0]
    assert "jack" in asked
    assert logged()[:1] == deleted != again
    assert texts() == ["welcome", "look"]
    assert events()[-1] == ("deleted", "", "")
    for seq in ("", "0", "-1", "x", "9" * 30, "1"):  # 1 is an event
        remover.post(of("delete_message", seq=seq))
    assert len(texts()) == 2


def test_a_chat_is_deleted_and_the_list_is_shown(remover):
    guild()

    response = remover.post(of("delete"), follow=True)

    assert response.request["PATH_INFO"] == ROOT
    assert len(logged()) == 1
    assert ChatReader().find("guild:7") is None
    assert remover.post(of("delete")).status_code == 404


def test_an_action_that_was_overtaken_does_nothing_and_logs_nothing(operator, monkeypatch):
    """Between the look and the act the member leaves."""
    chat = guild()
    kick = Chat.kick

    def late(self, user, **options):
        chat.leave(user)
        return kick(self, user, **options)

    monkeypatch.setattr(Chat, "kick", late)

    assert len(done(operator, of("kick", user="jack"))) == 1
    assert logged() == []


# Reading and searching messages


@pytest.mark.parametrize("page", [of("messages"), "/admin/components/mailbox/messages/?mailbox=jack"])
def test_reading_messages_is_logged_once_an_hour(staff, page):
    looks = ("view_chat", "view_messages_chat", "view_mailbox", "view_messages_mailbox")
    listener, live = staff(*looks), {"headers": {"X-Live": "1"}}
    for name, person in (("guild:7", "jack"), ("guild:8", "jill")):
        guild(name)
        Mailbox(person).push("joe", SECRET)
    assert SECRET in listener.get(page, **live).text

    [entry] = LogEntry.objects.all()
    assert entry.object_repr
    assert SECRET not in f"{entry.change_message} {entry.object_repr}"
    listener.get(page)
    listener.get(f"{page}&before=3&first=3")
    assert LogEntry.objects.count() == 1

    LogEntry.objects.update(action_time=timezone.now() - timedelta(minutes=59))
    listener.get(page, **live)
    assert LogEntry.objects.count() == 1
    LogEntry.objects.update(action_time=timezone.now() - timedelta(minutes=61))
    listener.get(page, **live)
    assert LogEntry.objects.count() == 2
    listener.get(page.replace("guild%3A7", "guild:8").replace("jack", "jill"))
    assert LogEntry.objects.count() == 3

    staff(*looks, "view_queue").get(page)
    assert LogEntry.objects.values("user").distinct().count() == 2


def test_words_lead_to_their_message(reader, monkeypatch):
    chat = guild()
    monkeypatch.setattr("components.services.chat.admin.chats.MESSAGES", 11)
    for number in range(15):
        chat.send("joe", f"later {number} <script>alert(1)</script>")

    page = reader.get(of("messages", q="MILL treas"))

    assert "the <mark>treasure</mark> lies below the <mark>mill</mark>" in page.text
    [link] = re.findall(r'href="([^"]+#message-\d+)"', page.text)
    path, _, anchor = unescape(link).partition("#")
    there = reader.get(path).text
    assert SECRET in there.partition(f'id="{anchor}"')[2].partition("</tr>")[0]
    assert "later 2" in there  # what came after it
    assert "later 14" not in there
    assert "<script>alert" not in reader.get(of("messages", q="later")).text
    assert {entry.change_message for entry in LogEntry.objects.all()} == {"Read the messages."}


@pytest.mark.parametrize("words", ["/", "a b c d e f g h i", "x" * 300])
def test_a_search_for_nothing_and_for_too_much_is_refused(reader, words):
    guild()

    assert reader.get(of("messages", q=words)).status_code == 400
