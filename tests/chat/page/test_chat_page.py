"""The chat page without scripts: what its links and forms do, and for whom."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings
from pytest_django.asserts import assertContains, assertNotContains, assertRedirects

from components.services.chat import Chat, ChatSettings, Inbox, Presence, Role
from components.services.chat.page.texts import here_now, linked, mentioned
from tests.support.chats import let_pass
from tests.support.restricted import operator

PEOPLE = ("joe", "jack", "jill")
FIELD = re.compile(r'name="(client_id|key)" value="([^"]+)"')


@pytest.fixture
def people(db, redis):
    """Their ids, by name."""
    return {name: str(User.objects.create_user(name).pk) for name in PEOPLE}


def visitor(name):
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def test_a_reply_quotes_the_message_that_its_form_names(people, chat):
    client = visitor("jack")
    asked = client.get(f"/chat/{chat.id}/?reply=2")
    assertContains(asked, "<b>Reply to joe</b> Who has the key?")
    assertContains(asked, '<input type="hidden" name="reply_to" value="2">')

    client.post(f"/chat/{chat.id}/", {"text": "I have", "reply_to": "2", "client_id": "one"})

    assert chat.history(people["joe"]).messages[-1].reply_to.seq == 2
    quote = '<a class="chat-quote" href="?message=2#message-2"><b>joe</b> Who has the key?</a>'
    assertContains(visitor("joe").get(f"/chat/{chat.id}/"), quote)
    chat.delete_message(2)
    assertContains(visitor("joe").get(f"/chat/{chat.id}/"), "Reply to a message that is no longer there")


def test_what_was_edited_and_reacted_to_is_shown_and_changed_by_scripts_only(people, chat):
    chat.edit(people["joe"], 2, "Who has the keys?")
    chat.react(people["jack"], 2, "👍")

    shown = visitor("jack").get(f"/chat/{chat.id}/")

    assertContains(shown, ">edited</time>")
    assertContains(shown, '<span class="chat-reaction mine" title="jack">👍 <span>1</span>')
    assertNotContains(shown, "chat-verb")


def test_messages_are_formatted(people, chat):
    chat.send(people["joe"], "**Now**, <b>or\n- [never](https://example.com/)")

    shown = visitor("jack").get(f"/chat/{chat.id}/")

    assertContains(
        shown, '<div class="chat-text" dir="auto"><strong>Now</strong>, &lt;b&gt;or<ul><li><a href='
    )


def test_a_refused_reply_keeps_what_it_replies_to(people, chat):
    answer = visitor("jack").post(f"/chat/{chat.id}/", {"text": " ", "reply_to": "2", "client_id": "one"})

    assert answer.status_code == 422
    assertContains(answer, '<input type="hidden" name="reply_to" value="2">', status_code=422)


@pytest.mark.parametrize("query", ["reply=99", "reply=1", "reply=x", "message=x", "message=99", "after=99"])
def test_an_address_that_names_no_message_shows_the_chat(people, chat, query):
    assert visitor("jack").get(f"/chat/{chat.id}/?{query}").status_code == 200


def test_a_link_shows_the_history_around_a_message(people, chat):
    chat.configure(rate_limit=0)
    for number in range(120):
        chat.send(people["joe"], f"number {number}.")

    answer = visitor("jack").get(f"/chat/{chat.id}/?message=60")

    assertContains(answer, '<div class="chat-message wanted" id="message-60">')
    assertContains(answer, '<a class="chat-when" href="?message=60#message-60">')
    assertContains(answer, '<a class="chat-button" href="?before=36">Older messages</a>')
    assertContains(answer, '<a class="chat-button" href="?after=85">Newer messages</a>')
    later = visitor("jack").get(f"/chat/{chat.id}/?after=85")
    assertContains(later, "number 84.")
    assertContains(later, '<a class="chat-button" href="?before=86">Older messages</a>')
    assertNotContains(later, "Newer messages")


def hidden_field(response):
    """What makes a form that is sent twice the same."""
    return FIELD.search(response.content.decode())[2]


def texts_of(chat, user):
    return [message.text for message in chat.history(user).messages if not message.event]


@pytest.fixture
def chat(people):
    """Joe's, with jack in it; jill is a stranger to it."""
    return Chat.create(
        people["joe"], members=[people["jack"]], title="Lantern Keepers", text="Who has the key?"
    )


@pytest.mark.parametrize("path", ["/chat/", "/chat/c1/", "/chat/-/new/", "/chat/c1/members/"])
def test_an_anonymous_visitor_is_sent_to_the_login(client, db, redis, path):
    assertRedirects(client.get(path), f"/login/?next={path}")


def test_the_list_shows_what_is_unread_and_who_is_mentioned(people, chat):
    chat.send(people["joe"], "@jack bring it", mentions=[people["jack"]])

    answer = visitor("jack").get("/chat/")

    assertContains(answer, "Lantern Keepers")
    assertContains(answer, "joe: @jack bring it")
    assertContains(
        answer, '<span class="chat-badge">2<span class="chat-hidden"> unread</span></span>', html=True
    )
    assertContains(answer, "You are mentioned.")


def test_looking_changes_nothing_and_a_button_marks_as_read(people, chat):
    client = visitor("jack")
    assert client.get(f"/chat/{chat.id}/read/").status_code == 405
    assertContains(client.get(f"/chat/{chat.id}/"), "New messages")
    assert chat.news(people["jack"]).unread == 1

    client.post(f"/chat/{chat.id}/read/", {"seq": chat.news(people["jack"]).last_seq})

    assert chat.news(people["jack"]).unread == 0
    assertNotContains(client.get(f"/chat/{chat.id}/"), "New messages")


@pytest.mark.parametrize("seq", ["", "-1", "x", "9" * 30, "²"])
def test_reading_up_to_what_is_no_seq_changes_nothing(people, chat, seq):
    visitor("jack").post(f"/chat/{chat.id}/read/", {"seq": seq})

    assert chat.news(people["jack"]).unread == 1


def test_a_form_that_is_sent_twice_sends_one_message(people, chat):
    client = visitor("jack")
    form = {"text": "I have it.", "client_id": hidden_field(client.get(f"/chat/{chat.id}/"))}

    for _ in range(2):
        assertRedirects(client.post(f"/chat/{chat.id}/", form), f"/chat/{chat.id}/")

    assert texts_of(chat, people["joe"]) == ["Who has the key?", "I have it."]


def test_a_message_mentions_the_members_that_it_names(people, chat):
    visitor("jack").post(f"/chat/{chat.id}/", {"text": "@joe and @jill: look"})

    assert chat.history(people["joe"]).messages[-1].mentions == (people["joe"],)


def test_a_refused_value_is_explained_and_kept_in_the_form(people, chat):
    text = "x" * 4_001

    answer = visitor("jack").post(f"/chat/{chat.id}/", {"text": text})

    assertContains(answer, "too long", status_code=422)
    assertContains(answer, text, status_code=422)
    assert texts_of(chat, people["joe"]) == ["Who has the key?"]


def test_a_sender_over_the_rate_learns_when_to_go_on(people):
    chat = Chat.create(people["joe"], members=[people["jack"]], settings=ChatSettings(slow_mode=60))
    client = visitor("jack")
    client.post(f"/chat/{chat.id}/", {"text": "one"})

    answer = client.post(f"/chat/{chat.id}/", {"text": "two"})

    assertContains(answer, "That was too fast.", status_code=429)


@pytest.mark.parametrize("path", ["", "members/"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_stranger_cannot_tell_a_chat_from_none(people, chat, path, method):
    client = visitor("jill")

    ours = getattr(client, method)(f"/chat/{chat.id}/{path}")
    none = getattr(client, method)(f"/chat/nowhere/{path}")

    assert ours.status_code == none.status_code == 404
    assert ours.content.replace(chat.id.encode(), b"nowhere") == none.content
    assert texts_of(chat, people["joe"]) == ["Who has the key?"]


def test_older_messages_are_a_link_away(people, chat):
    chat.configure(rate_limit=0)
    for number in range(60):
        chat.send(people["joe"], f"number {number}.")
    client = visitor("jack")

    newest = client.get(f"/chat/{chat.id}/")
    link = re.search(r'href="(\?before=\d+)"', newest.content.decode())[1]
    older = client.get(f"/chat/{chat.id}/{link}")

    assertContains(newest, "number 59.")
    assertNotContains(newest, "number 9.")
    assertContains(older, "number 9.")
    assertContains(older, "Newest messages")


@pytest.mark.parametrize("before", ["x", "-1", "9" * 30, "²"])
def test_an_unknown_place_in_the_history_shows_the_newest(people, chat, before):
    assertContains(visitor("jack").get(f"/chat/{chat.id}/", {"before": before}), "Who has the key?")


def test_a_chat_is_made_of_user_names_once(people):
    client = visitor("joe")
    form = {"members": "jack, @jill", "text": "Hi", "key": hidden_field(client.get("/chat/-/new/"))}

    first, second = (client.post("/chat/-/new/", form) for _ in range(2))

    (made,) = Inbox(people["jill"]).chats()
    assert first.url == second.url == f"/chat/{made.chat_id}/"
    assert made.reads.keys() == set(people.values())
    assertContains(client.get(first.url), "jack, jill")


def test_a_chat_with_nobody_is_refused_and_what_was_written_stays(people):
    form = {"members": "jack, nobody", "title": "Keepers", "key": "0123456789"}

    answer = visitor("joe").post("/chat/-/new/", form)

    assertContains(answer, "There is nobody with this name to whom you may write: nobody.", status_code=422)
    assertContains(answer, "Keepers", status_code=422)
    assert Inbox(people["joe"]).chats() == []


def test_an_owner_manages_members_and_a_member_leaves(people, chat):
    joe, jack = visitor("joe"), visitor("jack")
    path = f"/chat/{chat.id}/members/"

    def does(action, **fields):
        assertRedirects(joe.post(path, {"action": action, **fields}), path)

    does("add", names="jill")
    does("moderator", user=people["jill"])
    does("mute", user=people["jack"])
    assertContains(jack.get(f"/chat/{chat.id}/"), "You are muted in this chat for now.")
    does("unmute", user=people["jack"])
    does("rename", title="The Keepers")
    assertContains(joe.get(path), "Members of The Keepers")
    roles = {member.user: member.role for member in chat.members()}
    assert roles == {people["joe"]: Role.OWNER, people["jill"]: Role.MODERATOR, people["jack"]: Role.MEMBER}

    assertRedirects(jack.post(path, {"action": "leave"}), "/chat/")
    does("block", user=people["jill"])

    assert [member.user for member in chat.members()] == [people["joe"]]
    assert visitor("jill").get(f"/chat/{chat.id}/").status_code == 404


@pytest.mark.parametrize(
    "form",
    [
        {"action": "kick", "user": "{joe}"},
        {"action": "owner", "user": "{jack}"},
        {"action": "rename", "title": "Mine"},
        {"action": "close"},
        {"action": "add", "names": "jill"},
    ],
)
def test_a_member_may_do_nothing_of_an_owners(people, chat, form):
    before = chat.info(), chat.members()
    filled = {name: value.format(**people) for name, value in form.items()}

    answer = visitor("jack").post(f"/chat/{chat.id}/members/", filled)

    assertContains(answer, "Your role in the chat does not include this.", status_code=403)
    assert (chat.info(), chat.members()) == before


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"action": "dance"}, "The form names no known action."),
        ({}, "The form names no known action."),
        ({"action": "add", "names": "nobody"}, "There is nobody with this name"),
        ({"action": "add", "names": ""}, "Give at least one user name."),
        ({"action": "rename", "title": "x" * 201}, "A title has at most 200 characters"),
        ({"action": "rename", "title": "a\tb"}, "all of them printable"),
    ],
)
def test_a_form_that_cannot_be_followed_is_told_why(people, chat, form, told):
    answer = visitor("joe").post(f"/chat/{chat.id}/members/", form)

    assertContains(answer, told, status_code=422)


def test_a_closed_chat_can_be_read(people, chat):
    client = visitor("joe")
    client.post(f"/chat/{chat.id}/members/", {"action": "close"})

    assertContains(client.get(f"/chat/{chat.id}/"), "This chat is closed.")
    answer = client.post(f"/chat/{chat.id}/", {"text": "hello?"})
    assertContains(answer, "The chat is closed: nothing can be sent to it.", status_code=409)


def test_nothing_is_kept_by_caches(people, chat):
    client = visitor("joe")
    for path in ("/chat/", f"/chat/{chat.id}/", f"/chat/{chat.id}/members/", "/chat/-/new/"):
        assert "no-store" in client.get(path)["Cache-Control"]


def test_the_page_says_when_redis_is_away(people, redis_server):
    from components.testing import redis_at

    with redis_at("unix:///nowhere/at-all"):
        assert visitor("joe").get("/chat/").status_code == 503


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no link", "no link"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("https://", "https://"),
        (
            "see http://a.example/?x=1&y=2.",
            'see <a href="http://a.example/?x=1&amp;y=2" rel="noopener noreferrer nofollow ugc" target="_blank">'
            "http://a.example/?x=1&amp;y=2</a>.",
        ),
        (
            'https://a.example/"onclick=alert(1)',
            '<a href="https://a.example/" rel="noopener noreferrer nofollow ugc" target="_blank">https://a.example/</a>'
            "&quot;onclick=alert(1)",
        ),
    ],
)
def test_links_are_made_of_http_addresses_only(text, shown):
    assert linked(text) == shown


def test_the_longer_of_two_names_is_mentioned():
    names = {"1": "ann", "2": "ann.marie", "3": "bob"}

    assert mentioned("@ann.marie hi", names) == ["2"]
    assert mentioned("hi @ann, hi @bob!", names) == ["1", "3"] or mentioned("hi @ann, hi @bob!", names) == [
        "3",
        "1",
    ]
    assert mentioned("me@bob.example @bobby", names) == []


#: What no person, chat or form can be called: each is longer, shorter or other than a name may be.
NO_NAMES = ["", "x" * 501, "x" * 5_000, "\0", "\U0001f600" * 501]


@pytest.mark.parametrize("name", NO_NAMES, ids=range(len(NO_NAMES)))
@pytest.mark.parametrize(
    "action",
    ["kick", "block", "mute", "unmute", "owner", "moderator", "member", "add", "rename", "leave", "x"],
)
def test_a_name_that_nobody_can_have_is_refused_on_the_members_page(people, chat, action, name):
    posted = {"action": action, "user": name, "names": name, "title": name}

    answer = visitor("joe").post(f"/chat/{chat.id}/members/", posted)

    if action in ("add", "rename", "leave", "x"):
        assert answer.status_code in (302, 422)
    elif 1 <= len(name) <= 500:
        assert answer.status_code in (302, 403, 409)  # such a name there could be
    else:
        assert answer.status_code == 400
        assertContains(answer, "1 to 500 characters", status_code=400)


@pytest.mark.parametrize("name", NO_NAMES, ids=range(len(NO_NAMES)))
def test_no_field_of_the_chat_page_fails_by_its_length(people, chat, name):
    joe = visitor("joe")
    quoted = quote(name.encode("utf-8", "replace")) or "-"
    answers = [
        joe.get(f"/chat/{quoted}/"),
        joe.get(f"/chat/{quoted}/members/"),
        joe.post(f"/chat/{quoted}/read/", {"seq": "1"}),
        joe.get(f"/chat/{chat.id}/", {"before": name, "chats": name}),
        joe.get("/chat/", {"chats": name}),
        joe.post(f"/chat/{chat.id}/read/", {"seq": name}),
        joe.post(f"/chat/{chat.id}/", {"text": "hello", "client_id": name}),
        *(
            joe.post(
                "/chat/-/new/", {"members": "jack", "title": "", "text": "", "key": "k" * 12, field: name}
            )
            for field in ("members", "title", "text", "key")
        ),
    ]

    assert [answer.status_code for answer in answers if answer.status_code not in (200, 302, 404, 422)] == []


def unwilling_jill(by, ids):
    return {each for each in ids if User.objects.get(pk=each).username == "jill"}


def test_people_join_chats_only_by_their_consent_on_the_page_too(people, chat):
    joe = visitor("joe")
    with override_settings(COMPONENTS={"CHAT_CONSENT": "tests.chat.page.test_chat_page.unwilling_jill"}):
        added = joe.post(f"/chat/{chat.id}/members/", {"action": "add", "names": "jill"})
        made = joe.post("/chat/-/new/", {"members": "jack, jill", "key": "k" * 12})

    assert (added.status_code, made.status_code) == (422, 422)
    assertContains(made, "There is nobody with this name to whom you may write: jill.", status_code=422)
    assert Inbox(people["jill"]).chats() == []


def test_the_page_says_so_when_somebody_creates_or_adds_too_much(people, chat):
    joe = visitor("joe")
    with override_settings(COMPONENTS={"CHAT_CREATE_LIMIT": 1, "CHAT_ADD_LIMIT": 1, "MAX_CHATS_JOINED": 2}):
        made = [joe.post("/chat/-/new/", {"members": "jill", "key": f"{key}" * 12}) for key in range(2)]
        added = joe.post(f"/chat/{chat.id}/members/", {"action": "add", "names": "jill"})
        Chat.create(people["jill"])
        other = visitor("jack").post("/chat/-/new/", {"members": "jill", "key": "k" * 12})

    assert [answer.status_code for answer in [*made, added, other]] == [302, 422, 429, 422]
    assertContains(made[1], "That was too fast.", status_code=422)
    assertContains(other, "the limit of chats to create", status_code=422)
    assert len(Inbox(people["jill"]).chats()) == 2


def test_a_long_list_has_pages(people):
    for number in range(60):
        Chat.create(people["joe"], title=f"Chat <{number:02}>", text="x" * 4_000)
    joe = visitor("joe")
    first = joe.get("/chat/")
    more = re.search(r'href="(\?chats=[^"]+)"', first.content.decode())[1]
    second = joe.get(f"/chat/{more}")

    titles = [re.findall(r"Chat &lt;(\d\d)&gt;", answer.content.decode()) for answer in (first, second)]
    assert [len(set(each)) for each in titles] == [50, 10]
    assert len({*titles[0], *titles[1]}) == 60
    assertNotContains(second, "More chats")
    assertContains(joe.get("/chat/?chats=nonsense"), "More chats")


def test_the_page_and_its_scripts_speak_german(people, chat):
    client = visitor("jack")
    asked = {"headers": {"Accept-Language": "de"}}

    page = client.get(f"/chat/{chat.id}/?reply=2", **asked)
    catalogue = client.get("/components/jsi18n/", **asked)

    assertContains(page, "<b>Antwort an joe</b>")
    assertContains(page, 'src="/components/jsi18n/"')
    assertContains(catalogue, '"Not sent.": "Nicht gesendet."')


def test_a_page_says_who_is_there_and_who_was(people, chat):
    client = visitor("joe")
    assertContains(client.get(f"/chat/{chat.id}/"), '<p class="chat-here"></p>')
    Presence(chat.id).attend(people["jack"])

    shown = client.get(f"/chat/{chat.id}/")

    assertContains(shown, '<p class="chat-here">Here now: jack</p>')
    assertContains(shown, " data-presence>")
    assert Presence(chat.id).look(people["jack"]).count == 0  # a GET changes nothing
    assertContains(client.get(f"/chat/{chat.id}/members/"), "here now", 1)
    let_pass(operator(), chat.id, 7_200)
    assertContains(client.get(f"/chat/{chat.id}/members/"), "last here 2\xa0hours ago", 1)
    with override_settings(COMPONENTS={"CHAT_PRESENCE": False}):
        assertNotContains(client.get(f"/chat/{chat.id}/"), "data-presence")
        assertNotContains(client.get(f"/chat/{chat.id}/members/"), "last here")


def test_of_many_people_some_are_named():
    assert here_now([], 0) == ""
    assert here_now(["Ann", "Bo", "Cy"], 3) == "Here now: Ann, Bo, Cy"
    assert here_now(["Ann", "Bo", "Cy", "Di"], 70) == "Here now: Ann, Bo, Cy and 67 more"
