"""The chat page without scripts: what its links and forms do, and for whom; the badge, and the search."""

import re
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.template import Context, Template
from django.test import Client, RequestFactory
from django.test.utils import override_settings
from pytest_django.asserts import assertContains, assertNotContains, assertRedirects

from components.services.chat import Chat, Inbox, Presence, Role, Unread
from components.services.chat.api import messages
from components.services.rates import RateLimit
from components.testing import redis_at
from tests.support.chats import FREE, let_pass
from tests.support.restricted import operator

PEOPLE = ("joe", "jack", "jill")
BADGE = Template("{% load chat %}{% chat_badge %}")
NOTHING_UNREAD = '<span class="components-chat-badge" data-unread="0" data-url="/chat/-/badge/"></span>'
FIELD = re.compile(r'name="(client_id|key)" value="([^"]+)"')


@pytest.fixture
def people(db, redis):
    """Their ids, by name."""
    return {name: str(User.objects.create_user(name).pk) for name in PEOPLE}


def visitor(name):
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


@pytest.fixture
def chat(people):
    """Joe's, with jack in it; jill is a stranger to it."""
    return Chat.create(
        people["joe"], members=[people["jack"]], title="Lantern Keepers", text="Who has the key?"
    )


def hidden_field(response):
    """What makes a form that is sent twice the same."""
    return FIELD.search(response.content.decode())[2]


def texts_of(chat, user):
    return [message.text for message in chat.history(user).messages if not message.event]


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
    chat.send(people["joe"], data={"url": 'https://a.example/"onclick=alert(1)'})

    shown = visitor("jack").get(f"/chat/{chat.id}/")

    formatted = '<div class="chat-text" dir="auto"><strong>Now</strong>, &lt;b&gt;or<ul><li><a href='
    assertContains(shown, formatted)
    assertContains(shown, '_blank">https://a.example/</a>&quot;onclick=alert(1)')


def test_a_long_history_is_read_by_links(people, chat):
    chat.configure(rate_limit=0)
    for number in range(120):
        chat.send(people["joe"], f"number {number}.")
    jack = visitor("jack")

    for query, text, links in (
        ("", "number 119.", {"?before=74"}),
        ("?before=74", "number 69.", {"?before=24", f"/chat/{chat.id}/"}),
        ("?message=60", '<div class="chat-message wanted" id="message-60">', {"?before=36", "?after=85"}),
        ("?after=85", "number 84.", {"?before=86"}),
    ):
        shown = jack.get(f"/chat/{chat.id}/{query}")
        assertContains(shown, text)
        found = set(re.findall(r'<a class="chat-button" href="([^"]+)"', shown.content.decode()))
        assert links <= found
        assert ("?after=85" in found) == (query == "?message=60")


def test_the_list_shows_what_is_unread_and_who_is_mentioned(people, chat):
    chat.send(people["joe"], "@jack **bring** it", mentions=[people["jack"]])

    answer = visitor("jack").get("/chat/")

    assertContains(answer, "Lantern Keepers")
    assertContains(answer, "joe: @jack bring it")
    badge = '<span class="chat-badge">2<span class="chat-hidden"> unread</span></span>'
    assertContains(answer, badge, html=True)
    assertContains(answer, "You are mentioned.")


def test_looking_changes_nothing_and_a_button_marks_as_read(people, chat):
    client = visitor("jack")
    assert client.get(f"/chat/{chat.id}/read/").status_code == 405
    User.objects.create_user("mary")  # who is not in it
    assert visitor("mary").post(f"/chat/{chat.id}/read/", {"seq": "x"}).status_code == 404
    assertContains(client.get(f"/chat/{chat.id}/"), "New messages")
    assert chat.news(people["jack"]).unread == 1

    client.post(f"/chat/{chat.id}/read/", {"seq": chat.news(people["jack"]).last_seq})

    assert chat.news(people["jack"]).unread == 0
    assertNotContains(client.get(f"/chat/{chat.id}/"), "New messages")


def test_a_form_that_is_sent_twice_sends_one_message_which_mentions_whom_it_names(people, chat):
    client = visitor("jack")
    form = {"text": "I have it, @joe and @jill.", "client_id": hidden_field(client.get(f"/chat/{chat.id}/"))}

    for _ in range(2):
        assertRedirects(client.post(f"/chat/{chat.id}/", form), f"/chat/{chat.id}/")

    assert texts_of(chat, people["joe"]) == ["Who has the key?", form["text"]]
    assert chat.history(people["joe"]).messages[-1].mentions == (people["joe"],)


@pytest.mark.parametrize(
    ("method", "path"),
    [("get", ""), ("post", ""), ("get", "members/"), ("post", "members/"), ("get", "search/?q=key")],
)
def test_a_stranger_cannot_tell_a_chat_from_none(people, chat, path, method):
    client = visitor("jill")

    ours = getattr(client, method)(f"/chat/{chat.id}/{path}")
    none = getattr(client, method)(f"/chat/nowhere/{path}")

    assert ours.status_code == none.status_code == 404
    assert ours.content.replace(chat.id.encode(), b"nowhere") == none.content
    assert texts_of(chat, people["joe"]) == ["Who has the key?"]


def test_a_chat_is_made_of_user_names_once(people):
    client = visitor("joe")
    form = {"members": "jack, @jill", "text": "Hi", "key": hidden_field(client.get("/chat/-/new/"))}

    first, second = (client.post("/chat/-/new/", form) for _ in range(2))

    (made,) = Inbox(people["jill"]).chats()
    assert first.url == second.url == f"/chat/{made.chat_id}/"
    assert made.reads.keys() == set(people.values())
    assertContains(client.get(first.url), "jack, jill")
    Chat(made.chat_id).leave(people["joe"])
    again = client.post("/chat/-/new/", form)
    assertContains(again, "have left since", status_code=422)
    assert client.post("/chat/-/new/", form | {"key": hidden_field(again)}).status_code == 302


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


def test_without_time_zones_times_are_those_of_the_site(people, chat):
    client = visitor("jack")
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Kathmandu"):
        chat.mute(people["jack"], seconds=60)
        shown = client.get(f"/chat/{chat.id}/")
        assertContains(client.get(f"/chat/{chat.id}/members/"), "muted")
        sent_at = chat.history(people["jack"]).messages[-1].sent_at.astimezone(ZoneInfo("Asia/Kathmandu"))

    assertContains(shown, "You are muted in this chat for now.")
    assertContains(shown, f"{sent_at:%H:%M}</time>")


def test_each_page_needs_a_login_is_kept_by_no_cache_and_is_503_without_redis(people, chat, client):
    joe = visitor("joe")
    its = [f"/chat/{chat.id}/{path}" for path in ("", "members/", "search/")]
    for path in ("/chat/", *its, "/chat/-/new/"):
        assertRedirects(client.get(path), f"/login/?next={path}")
        assert "no-store" in joe.get(path)["Cache-Control"]
        with redis_at("unix:///nowhere/at-all"):
            assert joe.get(path).status_code == 503


@pytest.mark.parametrize(
    ("prepare", "text", "status"),
    [
        (lambda chat: None, "x" * 4_001, 422),
        (lambda chat: None, " ", 422),
        (lambda chat: chat.mute(chat.members()[1].user), "hello", 403),
        (lambda chat: chat.close(), "hello", 409),
        (lambda chat: chat.delete_message(2), "hello", 302),
        (lambda chat: chat.trim(before=99), "hello", 302),
        (lambda chat: chat.configure(slow_mode=60), "hello", 429),
    ],
)
def test_a_message_that_is_refused_stays_in_the_form(people, chat, prepare, text, status):
    client, path = visitor("jack"), f"/chat/{chat.id}/"
    client.post(path, {"text": "first"})
    prepare(chat)

    answer = client.post(path, {"text": text, "reply_to": "2", "client_id": "one"})

    assert answer.status_code == status
    if status in (422, 429):
        assertContains(answer, 'name="client_id" value="one"', status_code=status)
        assertContains(answer, 'name="reply_to" value="2"', status_code=status)
        assertContains(answer, f">{text}</textarea>", status_code=status)
    elif status != 302:
        assertContains(client.get(path), '<p class="chat-silence">')
        assertContains(client.get(path), "Who has the key?")


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"action": "dance"}, 422),
        ({}, 422),
        ({"action": "add", "names": "nobody"}, 422),
        ({"action": "add", "names": ""}, 422),
        ({"action": "rename", "title": "x" * 201}, 422),
        ({"action": "rename", "title": "x" * 200}, 302),
        ({"action": "rename", "title": "a\tb"}, 422),
        ({"action": "kick", "user": "jenny"}, 409),
        ({"action": "member", "user": "{joe}"}, 403),
        ({"action": "kick", "user": "x" * 501}, 400),
        ({"action": "mute", "user": ""}, 400),
    ],
)
def test_a_form_that_cannot_be_followed_is_refused(people, chat, form, status):
    filled = {name: value.format(**people) for name, value in form.items()}

    answer = visitor("joe").post(f"/chat/{chat.id}/members/", filled)

    assert answer.status_code == status
    if status != 302:
        assertContains(answer, 'class="chat-error" role="alert"', status_code=status)
        assert chat.info().title == "Lantern Keepers"


@pytest.mark.parametrize("value", ["", "x", "-1", "99", "9" * 30, "\N{SUPERSCRIPT TWO}", "x" * 5_000, "\0"])
def test_a_place_or_a_name_that_is_none_is_no_error(people, chat, value):
    joe = visitor("joe")
    quoted = quote(value) or "-"

    for place in ("before", "after", "message", "reply"):
        assert joe.get(f"/chat/{chat.id}/", {place: value}).status_code == 200
    assertContains(
        joe.get(f"/chat/{chat.id}/", {"before": value if value != "99" else ""}), "Who has the key?"
    )
    assert joe.get("/chat/", {"chats": value}).status_code == 200
    joe.post(f"/chat/{chat.id}/read/", {"seq": value if value != "99" else ""})
    assert chat.news(people["jack"]).unread == 1
    for path in (f"/chat/{quoted}/", f"/chat/{quoted}/members/"):
        assert joe.get(path).status_code == 404
    for name in ("members", "title", "text", "key"):
        form = {"members": "jack", "title": "", "text": "", "key": "k" * 12, name: value}
        assert joe.post("/chat/-/new/", form).status_code in (302, 422)


def unwilling_jill(by, ids):
    return {each for each in ids if User.objects.get(pk=each).username == "jill"}


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        ("jack, nobody", {}),
        ("jack, jill", {"CHAT_CONSENT": f"{__name__}.unwilling_jill"}),
        ("jack, jill", {"MAX_CHATS_CREATED": 1}),
        ("jack, jill", {"CHAT_ADD_LIMIT": 2}),
    ],
)
def test_a_chat_that_is_refused_is_not_made_and_what_was_written_stays(people, names, settings):
    joe = visitor("joe")
    with override_settings(COMPONENTS=settings):
        assert joe.post("/chat/-/new/", {"members": "jack", "key": "k" * 12}).status_code == 302
        answer = joe.post("/chat/-/new/", {"members": names, "title": "Keepers", "key": "0123456789"})

        assertContains(answer, 'value="Keepers"', status_code=422)
        assert len(Inbox(people["joe"]).chats()) == 1
        if "CHAT_CONSENT" in settings:
            [made] = Inbox(people["joe"]).chats()
            form = {"action": "add", "names": "jill"}
            assert joe.post(f"/chat/{made.chat_id}/members/", form).status_code == 422


def badge(user):
    request = RequestFactory().get("/")
    request.user = user
    return BADGE.render(Context({"request": request})).strip()


def test_the_badge_counts_what_is_unread_in_all_chats(people):
    me = people["joe"]
    joe = User.objects.get(pk=me)
    assert badge(joe) == NOTHING_UNREAD
    for number in range(3):
        chat = Chat.create("jack", members=[me], text=f"hello {number}", settings=FREE)
    chat.send("jack", "you?")
    chat.acknowledge(me, 2)

    assert Inbox(me).unread() == Unread(messages=3, mentions=0, chats=3)
    whole = 'data-unread="3" data-url="/chat/-/badge/">3<span class="chat-hidden"> unread'
    assert f'<span class="components-chat-badge" {whole}' in badge(joe)
    chat.send("jack", "@joe", mentions=[me])
    assert Inbox(me).unread() == Unread(messages=4, mentions=1, chats=3)
    assert '<span aria-hidden="true">@</span>4' in badge(joe)
    assert ", some mention you</span>" in badge(joe)
    chat.configure(rate_limit=0)
    for _ in range(96):
        chat.send("jack", "hello")
    assert 'data-unread="100" data-url="/chat/-/badge/">' in badge(joe)
    assert ">99+<" in badge(joe)
    with redis_at("unix:///nowhere/at-all"):
        assert badge(joe) == NOTHING_UNREAD
    assert badge(AnonymousUser()) == BADGE.render(Context()).strip() == ""


def test_the_badge_has_an_address_of_its_own(people, client):
    assert client.get("/chat/-/badge/").content.strip() == b""

    Chat.create("jack", members=[people["joe"]], text="hello", settings=FREE)
    joe = visitor("joe")
    shown = joe.get("/chat/-/badge/")

    assert 'data-unread="1"' in shown.content.decode()
    assert "no-store" in shown["Cache-Control"]
    assert joe.post("/chat/-/badge/").status_code == 405


@pytest.fixture
def keys(people):
    """Joe's chat of sixty keys, and its address."""
    chat = Chat.create(people["joe"], text="Who has the **Schlüssel**, <b>?", settings=FREE)
    for number in range(60):
        chat.send(people["joe"], f"key {number}")
    return chat, f"/chat/{chat.id}/search/"


def test_messages_are_found_and_linked_to(keys):
    (chat, address), joe = keys, visitor("joe")
    assertContains(joe.get(f"/chat/{chat.id}/"), f'href="{address}" aria-label="Search in this chat"')
    assertContains(joe.get(address), '<input id="chat-words" type="search" name="q" value=""')

    shown = joe.get(address, {"q": "schl"})

    assertContains(shown, "Who has the <mark>Schlüssel</mark>, &lt;b&gt;?")
    assertContains(shown, f'href="/chat/{chat.id}/?message=2#message-2"')
    assertNotContains(shown, "Look further back")
    assertContains(joe.get(address, {"q": "gold"}), "No message has these words.")
    for words in ("a b c d e f g h i", "\u200b", "/", "x" * 300):
        assertContains(joe.get(address, {"q": words}), 'aria-invalid="true"', status_code=422)


def test_a_long_history_is_searched_in_parts(people, keys, monkeypatch):
    (_chat, address), joe = keys, visitor("joe")

    first = joe.get(address, {"q": "key"})
    assertContains(first, "<li>", 20 + 1)  # and the chat in the list
    assertContains(first, f'href="?q=key&amp;before={first.context["next"]}">Look further back')
    rest = joe.get(address, {"q": "key", "before": first.context["next"]})
    assertContains(rest, "key</mark> 39")
    monkeypatch.setattr("components.services.chat.chat.SEARCHED", 1)
    monkeypatch.setattr("components.services.chat.chat.MAX_LIMIT", 50)
    assertContains(joe.get(address, {"q": "schl"}), "Older ones have not been searched yet.")
    monkeypatch.setattr(messages, "RATE", RateLimit("tests", "1/h"))
    assert [joe.get(address, {"q": "key"}).status_code for _ in range(2)] == [200, 429]
