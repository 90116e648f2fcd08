"""What the Mailboxes page shows and does, with real mailboxes."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from components.kit.client import get_client
from components.services.autocomplete import AddressBook
from components.services.mailboxes import Fate, Mailbox
from components.services.mailboxes.keys import MailboxKeys
from tests.control_room.pages import DASH, addresses, done, logged, rows_of, texts_below, words
from tests.fixtures.admin import allowed

ROOT = "/admin/components/mailbox/"

url = addresses(ROOT)
page = texts_below(ROOT)

pytestmark = pytest.mark.usefixtures("redis")
viewer = allowed("view_mailbox")
reader = allowed("view_mailbox", "view_messages_mailbox")
operator = allowed("change_mailbox", "delete_mailbox", "view_mailbox", "view_messages_mailbox")


def fill(name="jack", *texts, limit=1_000):
    """A mailbox in which these wait, written by jill."""
    mailbox = Mailbox(name, limit=limit)
    for text in texts or ("hello",):
        mailbox.push("jill", text)
    return mailbox


def test_sizes_are_left_out_where_redis_may_not_be_asked_for_them(redis, operator, staff):
    fill("jack")
    AddressBook("guild").add("Ann", id=1)
    books = staff("view_addressbook")
    user = get_client().get_connection_kwargs().get("username") or "default"
    redis.execute_command("ACL", "SETUSER", user, "-memory")
    try:
        texts = [operator.get(ROOT).text, operator.get(url("clear", mailbox="jack")).text]
        texts.append(books.get("/admin/components/addressbook/").text)
        sizes = [Mailbox("jack").info().bytes, AddressBook("guild").info().bytes]
    finally:
        redis.execute_command("ACL", "SETUSER", user, "+memory")

    assert (sizes, [DASH in each for each in texts]) == ([None, None], [True] * 3)


def test_a_mailbox_is_listed_with_how_full_it_is_who_was_there_and_what_is_wrong_with_it(viewer):
    fill("jack", "one", "two").pull(1)

    [row] = rows_of(viewer, ROOT)

    assert re.fullmatch(r"jack 2 of 1,000 1 [\d:]+ .* ago [\d:]+ .* ago [\d.]+\s(KB|bytes) 2 0", row)
    Mailbox("jack", limit=2, when_full="drop_oldest").push("jill", "more")
    html = viewer.get(ROOT).text
    assert '<span class="bad">2 of 2</span>' in html
    assert '<span class="bad">1</span>' in html
    get_client().hset(MailboxKeys("jack").mailbox, "limit", "damaged")
    assert '<span class="bad">2 of' not in viewer.get(ROOT).text


def test_a_recipient_is_shown_by_name_and_found_by_name_or_id(viewer):
    jack = User.objects.create(username="jack of all trades")
    fill(str(jack.pk))

    [row] = rows_of(viewer, ROOT)
    by_name = viewer.get(ROOT, {"q": " jack of all trades "})
    by_id = viewer.get(ROOT, {"q": str(jack.pk)})

    assert row.startswith(f"jack of all trades {jack.pk} 1 of")
    assert by_name.url == by_id.url == url("mailbox", mailbox=jack.pk)
    assert f"Mailbox of jack of all trades ({jack.pk})" in words(viewer.get(by_id.url))


def test_messages_are_hidden_behind_a_permission_of_their_own(viewer, reader):
    fill("jack", "a secret")

    assert "secret" in page(reader, "messages/", mailbox="jack")
    for address in (url("messages", mailbox="jack"), url("mailbox", mailbox="jack"), ROOT):
        assert "secret" not in viewer.get(address).text
    assert viewer.get(url("messages", mailbox="jack")).status_code == 403


def test_permission_to_read_messages_shows_them_and_hands_nothing_out(reader):
    mailbox = fill("jack", "one\ntwo", "<script>alert(1)</script>")
    mailbox.push("joe", data={"picture": "https://example.com/é.png"})
    mailbox.pull(1)
    before = mailbox.info()

    rows = rows_of(reader, ROOT, "messages/", mailbox="jack")
    html = reader.get(url("messages", mailbox="jack")).text

    assert re.match(r"jill one two fetched, not confirmed yet [\d:]+", rows[0])
    assert re.match(r"jill <script>alert\(1\)</script> not fetched yet", rows[1])
    assert rows[2].startswith('joe {"picture": "https://example.com/é.png"} not fetched yet')
    assert "<script>alert" not in html
    assert mailbox.info() == before


def test_messages_are_listed_by_page(reader):
    fill("jack", *(f"message {number}" for number in range(120)))

    address = url("messages", mailbox="jack")
    pages = [rows_of(reader, address)]
    while match := re.search(r'href="([^"]*first=\d+)" rel="next"', reader.get(address).text):
        address = match[1].replace("&amp;", "&")
        pages.append(rows_of(reader, address))

    assert [len(rows) for rows in pages] == [50, 50, 20]
    assert "message 119" in pages[-1][-1]
    for first in ("", "-1", "x", "\N{SUPERSCRIPT TWO}", "9" * 30, "1.5"):
        rows = rows_of(reader, ROOT, "messages/", mailbox="jack", first=first)
        assert (len(rows), " message 0 " in rows[0]) == (50, True)


def test_a_mailbox_is_cleared_once_logged_and_all_can_see_it(operator):
    message = Mailbox("jack").push("jill", "hello").id
    address = url("clear", mailbox="jack")
    assert Mailbox("jack").depth() == 1

    said = done(operator, address)
    again = done(operator, address)

    assert said == logged() != again
    assert address not in operator.get(url("mailbox", mailbox="jack")).text
    assert LogEntry.objects.get().object_repr == "jack"
    assert Mailbox("jack").status(message).fate is Fate.DROPPED
    assert Mailbox("jack").missed() == 1


def test_the_mail_of_a_blocked_sender_is_taken_again(operator):
    mailbox = fill()
    mailbox.block("joe")
    address = url("unblock", mailbox="jack", sender="joe")
    assert re.search(r"joe [\d:]+ .* ago Accept mail again…", page(operator, "mailbox/", mailbox="jack"))

    said = done(operator, address)
    again = done(operator, address)

    assert said == logged() != again
    assert mailbox.blocked() == {}


def test_the_latest_of_many_blocked_senders_are_shown(viewer):
    mailbox = fill()
    for number in range(60):
        mailbox.block(f"sender {number}")

    rows = rows_of(viewer, ROOT, "mailbox/", mailbox="jack")

    assert len(rows) == 50
    assert "the latest 50 of 60" in page(viewer, "mailbox/", mailbox="jack")
