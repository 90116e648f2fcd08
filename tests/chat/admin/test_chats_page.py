"""What the Chats page shows and does, with real chats."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from components.control_room.names import shortened
from components.exceptions import Blocked, ChatClosed, Muted
from components.services.chat import Chat, ChatReader, ChatSettings, Role
from components.templatetags.control_room import legible
from tests.chat.admin.conversations import SECRET, guild
from tests.control_room.pages import addresses, done, logged, round_trips, rows_of, text_of, words
from tests.locks.admin.test_locks_page import AWKWARD

ROOT = "/admin/components/chat/"
DASH = "\N{EN DASH}"
NAME = "Lantern Keepers (guild:7)"
SIZE = "It has 3 members, and 4 messages and events."
AGO = r"[\d:]+ [\d.]+ m?s ago"

url = addresses(ROOT)

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def viewer(staff):
    return staff("view_chat")


@pytest.fixture
def operator(staff):
    return staff("change_chat")


@pytest.fixture
def remover(staff):
    return staff("view_chat", "delete_chat", "view_messages_chat")


@pytest.fixture
def reader(staff):
    return staff("view_chat", "view_messages_chat")


def page(client, name="", /, **query):
    return text_of(client, ROOT, name, **query)


def of(verb, **query):
    return url(verb.replace("_", "-"), chat="guild:7", **query)


def members():
    return {member.user: member for member in Chat("guild:7").members()}


def texts():
    return [item.text for item in ChatReader().messages("guild:7").messages if item.event is None]


def events():
    return [
        (item.event.kind, item.event.by, item.event.user)
        for item in ChatReader().messages("guild:7").messages
        if item.event
    ]


def test_while_there_is_none_one_sentence_says_how_that_changes(viewer):
    assert rows_of(viewer, ROOT) == [
        'There is no chat yet. Chat.create("joe", members=["jill"]) creates one.'
    ]


def test_a_chat_is_listed_with_its_size_and_its_last_message(viewer):
    guild()

    [row] = rows_of(viewer, ROOT)

    assert re.fullmatch(rf"Lantern Keepers guild:7 3 4 \d+\sbytes {AGO} Open", row)


def test_a_chat_without_a_title_goes_by_its_id(viewer):
    guild(title="").close()

    [row] = rows_of(viewer, ROOT)

    assert row.startswith("guild:7 3 5 ")
    assert row.endswith(" Closed")


def test_a_long_list_has_pages_that_hold_each_chat_once(viewer):
    ids = {Chat.create("joe", id=f"guild:{number}").id for number in range(120)}

    pages = [rows_of(viewer, ROOT, offset=offset) for offset in (0, 50, 100)]

    assert [len(rows) for rows in pages] == [50, 50, 20]
    assert {row.split()[0] for rows in pages for row in rows} == ids
    assert f"51{DASH}100 of 120" in page(viewer, offset=50)


@pytest.mark.parametrize("text", ["guild:7", " guild:7  "])
def test_a_chat_is_found_by_its_whole_id(viewer, text):
    guild()

    assert viewer.get(ROOT, {"q": text}).url == of("chat")


@pytest.mark.parametrize("text", ["guild", "GUILD:7", "Lantern Keepers", "x" * 600, "a\x00b", "../7"])
def test_a_missing_result_is_reported(viewer, text):
    guild()

    response = viewer.get(ROOT, {"q": text})

    assert f"No chat has the id “{legible(text)}”." in words(response)
    assert "live.js" not in response.text


def test_a_chat_has_a_page_of_its_own(viewer):
    guild()

    text = page(viewer, "chat/", chat="guild:7")
    rows = rows_of(viewer, ROOT, "chat/", chat="guild:7")

    last = ChatReader().find("guild:7").last_seq
    assert f"Id guild:7 State Open Members 3 Messages and events 4 numbers 1 to {last} " in text
    assert "by joe" in text
    assert "Messages of a member in each period at most 20" in text
    assert "Messages are deleted after never" in text
    assert [row.split()[:2] for row in rows] == [["joe", "Owner"], ["jack", "Member"], ["jill", "Member"]]
    assert re.fullmatch(rf"jill Member {AGO} 2 2 1 {DASH}", rows[2])


def test_the_settings_are_written_as_people_write_them(viewer):
    settings = ChatSettings(history=0, max_age=86_400.0, slow_mode=1.5, is_open=True, max_bytes=1_000_000)
    Chat.create("joe", id="guild:7", settings=settings)

    text = page(viewer, "chat/", chat="guild:7")

    assert "Earlier messages that a new member sees 0 " in text
    assert "Messages are deleted after 1 d " in text
    assert "Least time between two messages of a member 1.5 s " in text
    assert "Anyone may join yes" in text
    assert "Bytes kept at most 1,000,000 " in text
    assert "Messages that all have read are deleted after never " in text


def test_members_are_listed_by_page(viewer):
    Chat.create("joe", members=[f"player {number}" for number in range(60)], id="guild:7")

    first = rows_of(viewer, ROOT, "chat/", chat="guild:7")
    second = rows_of(viewer, ROOT, "chat/", chat="guild:7", offset=50)

    assert [len(first), len(second)] == [50, 11]
    assert first[0].startswith("joe Owner")
    assert len({row.split(" Member")[0] for row in [*first, *second]}) == 61


def test_permission_to_view_shows_no_message_texts(viewer, operator):
    guild()
    for client in (viewer, operator):
        pages = [client.get(ROOT), client.get(of("chat")), client.get(of("messages"))]

        assert pages[2].status_code == 403
        assert (
            "The messages are hidden: you do not have the permission to read the messages of chats"
            in words(pages[1])
        )
        assert f'href="{ROOT}messages/' not in pages[1].text
        for response in pages:
            assert SECRET not in response.text
            assert "pictures.example" not in response.text


def test_permission_to_read_messages_without_view_allows_neither(staff):
    guild()
    client = staff("view_messages_chat")

    for address in (ROOT, of("chat"), of("messages")):
        assert client.get(address).status_code == 403


def test_messages_and_events_are_shown_in_their_order_to_who_may_read_them(reader):
    chat = guild()
    chat.rename("Mill Seekers", by="joe")
    chat.kick("jack")

    rows = rows_of(reader, ROOT, "messages/", chat="guild:7")

    assert [int(row.split()[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert re.fullmatch(rf"\d+ joe welcome {AGO}", rows[-5])
    assert re.fullmatch(rf"\d+ jack {SECRET} mentions jill {AGO}", rows[-4])
    assert re.fullmatch(rf'\d+ joe look {{"picture": "https://pictures.example/mill.png"}} {AGO}', rows[-3])
    assert " joe renamed the chat: Mill Seekers " in rows[-2]
    assert " The system removed jack " in rows[-1]
    assert f'href="{of("messages")}"' in reader.get(of("chat")).text


def test_a_long_history_has_pages_that_hold_each_message_once(reader):
    chat = Chat.create("joe", id="guild:7", settings=ChatSettings(rate_limit=0))
    for number in range(130):
        chat.send("joe", f"message {number}")
    address, seen = of("messages"), []

    while address:
        html = reader.get(address).text
        seen[:0] = re.findall(r">(message \d+)<", html)
        older = re.search(r'<a href="([^"]*)" rel="prev">Older</a>', html)
        address = older and older[1].replace("&amp;", "&")

    assert seen == [f"message {number}" for number in range(130)]
    assert "Newest" in html


@pytest.mark.parametrize("before", ["1", "0"])
def test_before_the_first_message_there_is_nothing(reader, before):
    guild()

    assert rows_of(reader, ROOT, "messages/", chat="guild:7", before=before) == [
        "There are no older messages."
    ]


@pytest.mark.parametrize("before", ["", "-1", "x", "1.5", "9" * 500, "\N{SUPERSCRIPT TWO}"])
def test_a_place_in_the_history_that_is_none_is_the_newest(reader, before):
    guild()

    assert "look" in page(reader, "messages/", chat="guild:7", before=before)


def test_messages_are_shown_as_text_whatever_they_hold(reader):
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    chat = Chat.create("joe", members=[attack], title=attack, id="guild:7")
    chat.send(attack, attack, data={attack: attack}, mentions=["joe"])

    for address in (ROOT, of("chat"), of("messages")):
        html = reader.get(address).text
        assert "<script>alert" not in html
        assert "<img" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


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
    assert kicked[0].startswith(f"Removed jill ({jill.pk}) from the chat guild:7. Role: member, ")
    assert f" The system removed jill ({jill.pk}) " in rows_of(client, ROOT, "messages/", chat="guild:7")[-1]


def test_a_chat_is_closed_and_opened_again_and_both_are_logged(operator):
    chat = guild()

    asked = words(operator.get(of("close")))
    closed = done(operator, of("close"))
    again = done(operator, of("close"))
    with pytest.raises(ChatClosed):
        chat.send("joe", "too late")
    opened = done(operator, of("reopen"))
    chat.send("joe", "in time")
    open_already = done(operator, of("reopen"))

    assert SIZE in asked
    assert "Nobody can send messages to it until it is reopened." in asked
    assert [closed, opened] == [
        [f"Closed the chat {NAME}. {SIZE}"],
        [f"Reopened the chat {NAME}. {SIZE.replace('4', '5')}"],
    ]
    assert logged() == closed + opened
    assert again == [f"There is nothing to close: the chat {NAME} is closed already."]
    assert open_already == [f"There is nothing to reopen: the chat {NAME} is open already."]
    assert events()[-2:] == [("closed", "", ""), ("reopened", "", "")]


def test_a_member_is_kicked_and_it_is_logged(operator):
    guild()
    address = of("kick", user="jack")

    asked = words(operator.get(address))
    kicked = done(operator, address)
    again = done(operator, address)

    assert "The messages of jack stay." in asked
    assert re.fullmatch(
        rf"Removed jack from the chat {re.escape(NAME)}. Role: member, since [\d: A-Z-]+\.", kicked[0]
    )
    assert kicked == logged()
    assert again == [f"There is nobody to remove: jack is not in the chat {NAME}."]
    assert set(members()) == {"joe", "jill"}
    assert events()[-1] == ("kicked", "", "jack")


def test_the_only_owner_can_be_kicked_and_another_takes_their_place(operator):
    guild()

    done(operator, of("kick", user="joe"))

    assert members()["jack"].role is Role.OWNER


def test_the_last_member_can_be_kicked_and_then_the_chat_is_gone_in_words(operator):
    Chat.create("joe", id="guild:7")

    response = operator.post(of("kick", user="joe"), follow=True)

    assert response.status_code == 404
    assert "There is no chat 'guild:7'" in words(response)
    assert "Removed joe from the chat guild:7." in logged()[0]


def test_a_person_is_blocked_listed_and_unblocked(operator):
    chat = guild()

    blocked = done(operator, of("block", user="jack"))
    again = done(operator, of("block", user="jack"))
    [row] = rows_of(operator, ROOT, "chat/", table=1, chat="guild:7")
    with pytest.raises(Blocked):
        chat.add(["jack"])
    unblocked = done(operator, of("unblock", user="jack"))
    chat.add(["jack"])
    not_blocked = done(operator, of("unblock", user="jack"))

    assert blocked[0].startswith(f"Blocked jack in the chat {NAME}. Role: member, since ")
    assert again == [f"There is nobody to block: jack is blocked in the chat {NAME} already."]
    assert re.fullmatch(rf"jack {AGO} Unblock…", row)
    assert unblocked == [f"Unblocked jack in the chat {NAME}. Blocked until now."]
    assert not_blocked == [f"There is nobody to unblock: jack is not blocked in the chat {NAME}."]
    assert logged() == blocked + unblocked


def test_a_person_never_in_the_chat_can_be_blocked_in_advance(operator):
    guild()

    assert done(operator, of("block", user="jenny")) == [
        f"Blocked jenny in the chat {NAME}. This person is not a member at the moment."
    ]
    assert set(Chat("guild:7").blocked()) == {"jenny"}


@pytest.mark.parametrize("verb", ["kick", "block", "unblock", "mute", "unmute"])
def test_an_invalid_person_id_is_a_404_page(operator, verb):
    guild()

    response = operator.post(of(verb, user="x" * 600))

    assert response.status_code == 404
    assert "Nobody can have this name" in words(response)
    assert logged() == []


def test_an_empty_id_cannot_be_blocked(operator):
    guild()

    for verb in ("kick", "block", "unblock", "unmute"):
        assert "There is nobody to" in words(operator.get(of(verb)))


@pytest.mark.parametrize(
    ("seconds", "how_long"),
    [("600", "for 10 min"), ("86400", "for 1 d"), ("good", "until somebody unmutes them")],
)
def test_a_member_is_muted_for_a_while_and_unmuted(operator, seconds, how_long):
    chat = guild()

    asked = words(operator.get(of("mute", user="jack")))
    muted = done(operator, of("mute", user="jack"), seconds=seconds)
    with pytest.raises(Muted):
        chat.send("jack", "but")
    listed = operator.get(of("chat")).text
    unmuted = done(operator, of("unmute", user="jack"))
    chat.send("jack", "at last")
    again = done(operator, of("unmute", user="jack"))

    assert "A muted member can read messages, but cannot send any." in asked
    assert muted[0].startswith(f"Muted jack in the chat {NAME} {how_long}. Role: member, since ")
    assert 'aria-label="Unmute: jack"' in listed
    assert ("somebody unmutes them" in listed) == (seconds == "good")
    assert unmuted[0].startswith(f"Unmuted jack in the chat {NAME}. Role: member, since ")
    assert again == [f"There is nobody to unmute: jack is not muted in the chat {NAME}."]
    assert logged() == muted + unmuted


@pytest.mark.parametrize("seconds", ["1", "-600", "nan", "x"])
def test_a_time_that_is_not_offered_mutes_nobody(operator, seconds):
    guild()

    response = operator.post(of("mute", user="jack"), {"seconds": seconds})

    assert f"Select a valid choice. {seconds} is not one of the available choices." in words(response)
    assert members()["jack"].muted_until is None
    assert logged() == []


def test_a_time_that_is_not_given_mutes_nobody(operator):
    guild()

    response = operator.post(of("mute", user="jack"))

    assert "This field is required." in words(response)
    assert members()["jack"].muted_until is None


def test_a_person_outside_the_chat_cannot_be_muted(operator):
    guild()

    response = operator.get(of("mute", user="jenny"))

    assert response.status_code == 404
    assert f"'jenny' is not in the chat {NAME}." in words(response)


def test_a_history_is_trimmed_and_it_is_logged_how_much_went(remover):
    guild()
    last = ChatReader().find("guild:7").last_seq
    address = of("trim")

    asked = words(remover.get(address))
    trimmed = done(remover, address, before=str(last))
    again = done(remover, address, before=str(last))

    assert f"It has 3 members, and 4 messages and events with the numbers 1 to {last}." in asked
    assert re.fullmatch(
        rf"Deleted \d+ old messages and events of the chat {re.escape(NAME)}, those before number {last}\.",
        trimmed[0],
    )
    assert trimmed == logged()
    assert again == ["There was nothing to do."]
    assert texts() == ["look"]


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("", "This field is required."),
        ("0", "Ensure this value is greater than or equal to 1."),
        ("x", "Enter a whole number."),
        ("9" * 5000, "Enter a whole number."),
    ],
)
def test_an_invalid_number_is_shown_at_its_field_and_trims_nothing(remover, before, reason):
    guild()

    response = remover.post(of("trim"), {"before": before})

    assert reason in words(response)
    assert 'aria-invalid="true"' in response.text
    assert len(texts()) == 3
    assert logged() == []


def test_a_number_beyond_the_last_trims_all_there_is(remover):
    guild()

    done(remover, of("trim"), before=str(10**18))

    assert texts() == []
    assert "were deleted" in page(remover, "chat/", chat="guild:7")
    assert "This chat has no messages." in page(remover, "messages/", chat="guild:7")


def test_one_message_is_deleted_and_neither_page_nor_log_repeats_its_text(remover):
    guild()
    [seq] = [item.seq for item in ChatReader().messages("guild:7").messages if item.text == SECRET]
    address = of("delete_message", seq=seq)

    asked = words(remover.get(address))
    deleted = done(remover, address)
    again = done(remover, address)

    assert SECRET not in asked
    assert "It was sent by jack, " in asked
    assert deleted[0].startswith(f"Deleted message {seq} of the chat {NAME}. It was sent by jack, ")
    assert [*deleted, "Read the messages."] == logged()  # the page of messages is where one comes back to
    assert SECRET not in deleted[0]
    assert again == [f"There is nothing to delete: the chat {NAME} has no message {seq} any more."]
    assert texts() == ["welcome", "look"]
    assert f"The system deleted message {seq}" in page(remover, "messages/", chat="guild:7")


@pytest.mark.parametrize("seq", ["", "0", "-1", "x", "9" * 30, "1"])
def test_an_id_that_is_no_message_deletes_nothing(remover, seq):
    guild()  # its first number is the event of its making
    address = of("delete_message", seq=seq)

    assert "There is nothing to delete: the chat" in words(remover.get(address))
    remover.post(address)
    assert len(texts()) == 3
    assert logged() == []


def test_a_chat_is_deleted_and_the_list_is_shown(remover):
    guild()

    asked = words(remover.get(of("delete")))
    response = remover.post(of("delete"), follow=True)
    again = remover.post(of("delete"))

    assert "All its messages are deleted, for all its members." in asked
    assert response.request["PATH_INFO"] == ROOT
    assert logged() == [f"Deleted the chat {NAME}. {SIZE}"]
    assert ChatReader().find("guild:7") is None
    assert again.status_code == 404


def test_an_action_that_was_overtaken_does_nothing_and_logs_nothing(operator, monkeypatch):
    """Between the look and the act the member leaves."""
    chat = guild()
    kick = Chat.kick

    def late(self, user, **options):
        chat.leave(user)
        return kick(self, user, **options)

    monkeypatch.setattr(Chat, "kick", late)

    assert done(operator, of("kick", user="jack")) == [
        f"There is nobody to remove: jack is not in the chat {NAME}."
    ]
    assert logged() == []


@pytest.mark.parametrize("name", AWKWARD)
def test_people_and_titles_may_be_called_anything(staff, name):
    client = staff("change_chat", "delete_chat", "view_messages_chat")
    Chat.create("joe", members=[name], title=legible(name)[:100], text="hello", id="guild:7").send(
        name, "hello"
    )

    [row] = rows_of(client, ROOT)
    people = rows_of(client, ROOT, "chat/", chat="guild:7")
    said = rows_of(client, ROOT, "messages/", chat="guild:7")
    muted = done(client, of("mute", user=name), seconds="600")
    blocked = done(client, of("block", user=name))
    unblocked = done(client, of("unblock", user=name))
    entry = LogEntry.objects.latest("pk")
    logged_page = client.get(entry.get_admin_url(), follow=True)

    shown = shortened(legible(name))
    assert "guild:7" in row
    assert any(" ".join(shown.split()) in person for person in people)
    assert any(" ".join(shown.split()) in line for line in said)
    assert muted[0].startswith(f"Muted {shown} in the chat ")
    assert blocked[0].startswith(f"Blocked {shown} in the chat ")
    assert unblocked[0].startswith(f"Unblocked {shown} in the chat ")
    assert logged_page.request["PATH_INFO"] == f"{ROOT}chat/"
    assert "\x00" not in entry.object_id + entry.object_repr + entry.change_message


def test_buttons_are_only_shown_to_those_who_may_press_them(staff, viewer, operator, remover, reader):
    guild().block("jenny")

    def buttons(client):
        html = client.get(of("chat")).text
        if client in (remover, reader):
            html += client.get(of("messages")).text
        return set(re.findall(rf'class="button[^"]*" href="{ROOT}([a-z-]+)/', html))

    assert buttons(viewer) == buttons(reader) == set()
    assert buttons(operator) == {"close", "mute", "kick", "block", "unblock"}
    assert buttons(remover) == {"trim", "delete", "delete-message"}


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("", 4),
        ("chat/", 3),
        ("messages/", 2),
        ("close/", 1),
        ("kick/", 2),
        ("mute/", 2),
        ("delete-message/", 2),
    ],
)
def test_a_page_takes_so_many_round_trips_and_no_more_with_more_chats(staff, name, most):
    client = staff("view_chat", "change_chat", "delete_chat", "view_messages_chat")
    guild()
    address = f"{ROOT}{name}?chat=guild:7&user=jack&seq=3"
    client.get(address)

    few = round_trips(client, address)
    for number in range(120):
        Chat.create("joe", id=f"other:{number}", text="hello")

    assert few == most
    assert round_trips(client, address) == few
    assert ChatReader().count() == 121
