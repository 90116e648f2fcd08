"""Who reads what people wrote to each other is in Django's log, once an hour and not with each refresh."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from components.services.chat import Chat
from components.services.mailboxes import Mailbox
from tests.chat.admin.conversations import SECRET, guild

PAGES = ["/admin/components/chat/messages/?chat=guild:7", "/admin/components/mailbox/messages/?mailbox=jack"]
LIVE = {"headers": {"X-Live": "1"}}

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def written(redis):
    guild()
    guild("guild:8", title="Others")
    for name in ("jack", "jill"):
        Mailbox(name).push("joe", SECRET)


@pytest.fixture
def reader(staff):
    return staff("view_chat", "view_messages_chat", "view_mailbox", "view_messages_mailbox")


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("page", PAGES)
def test_reading_messages_is_logged_once_an_hour(reader, staff, page):
    assert SECRET in reader.get(page).text

    [entry] = LogEntry.objects.all()
    assert entry.change_message == "Read the messages."
    assert entry.object_repr
    assert SECRET not in f"{entry.change_message} {entry.object_repr}"
    for _ in range(5):
        reader.get(page, **LIVE)
    reader.get(f"{page}&before=3&first=3")
    assert LogEntry.objects.count() == 1

    LogEntry.objects.update(action_time=timezone.now() - timedelta(minutes=61))
    reader.get(page, **LIVE)
    assert LogEntry.objects.count() == 2

    staff("view_messages_chat", "view_messages_mailbox", "view_chat", "view_mailbox", "view_queue").get(page)
    assert LogEntry.objects.count() == 3
    assert LogEntry.objects.values("user").distinct().count() == 2


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("page", PAGES)
def test_a_request_for_the_refreshed_part_alone_is_logged_too(reader, page):
    assert SECRET in reader.get(page, **LIVE).text

    assert LogEntry.objects.count() == 1


@pytest.mark.usefixtures("written")
def test_replies_edits_and_reactions_are_shown(reader):
    chat = Chat("guild:7")
    first = next(each for each in chat.history("joe").messages if each.sender == "joe")
    chat.edit("joe", first.seq, "Changed")
    chat.react("joe", first.seq, "👍")
    chat.send("joe", "Again", reply_to=first.seq)

    shown = reader.get(PAGES[0]).text

    for text in ("Changed", "edited", "👍 1", f"replies to message {first.seq}"):
        assert text in shown


@pytest.mark.usefixtures("written")
def test_each_chat_and_each_mailbox_has_an_entry_of_its_own(reader):
    for page in PAGES:
        reader.get(page)
        reader.get(page.replace("guild:7", "guild:8").replace("jack", "jill"))

    assert LogEntry.objects.count() == 4


@pytest.mark.usefixtures("written")
def test_failed_and_empty_reads_of_messages_are_not_logged(staff):
    viewer = staff("view_chat", "view_mailbox")
    for page in PAGES:
        assert viewer.get(page).status_code == 403
        assert viewer.get(page.replace("messages/", "")).status_code == 200
        assert viewer.get(page.replace("messages/", page.split("/")[3] + "/")).status_code == 200

    assert not LogEntry.objects.exists()
