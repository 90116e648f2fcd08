"""The chat page in a real browser, with two people in it, on a server that can go away."""

import re

import pytest
from playwright.sync_api import expect

from components.services.autocomplete import RecentContacts
from components.services.chat import Chat, Inbox, Presence
from tests.browser.axe import assert_accessible
from tests.browser.conftest import LIVE
from tests.support.chats import MENTIONING, SILENT
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

KEYS = "Who has the key?"


@pytest.fixture
def chat(served):
    return Chat.create(served.ids["joe"], members=[served.ids["jack"]], title="Keepers", text=KEYS)


def composer(page):
    return page.get_by_role("textbox", name="Message to")


def say(page, text):
    composer(page).fill(text)
    composer(page).press("Enter")


def said(page):
    return page.locator(".chat-message .chat-text")


def item(page, title="Keepers"):
    return page.get_by_role("navigation", name="Chats").get_by_role("link", name=title)


def act(page, text, verb, name="joe"):
    """Choose *verb* from the menu of the message with this text."""
    message = page.locator(".chat-message", has_text=text)
    message.hover()
    message.locator(".chat-menu > summary").click()
    message.get_by_role("button", name=f"{verb} the message of {name}").click()


def status(page):
    return page.locator(".chat-status")


def stored(chat, user):
    return [message.text for message in chat.history(user, limit=200).messages if not message.event]


def test_messages_sent_while_a_member_is_offline_are_there_on_return(enter, served, chat):
    joe, jack = enter("joe").chat(f"/chat/{chat.id}/"), enter("jack")
    Chat.create(served.ids["jack"], title="Elsewhere", text="alone")
    page = jack.chat("/chat/")
    item(page, "Elsewhere").click()
    expect(said(page)).to_have_text(["alone"])
    jack.page.context.set_offline(True)
    expect(status(page)).to_contain_text("You are offline.")

    say(joe, "@jack are you there?")
    say(joe, "I can't wait.")
    expect(joe.locator(".pending")).to_have_count(0)
    jack.page.context.set_offline(False)

    expect(item(page)).to_have_accessible_name(re.compile(r"You are mentioned\. 3 unread$"))
    expect(page).to_have_title(re.compile(r"^\(3\) Elsewhere"))
    expect(status(page)).to_be_empty()
    item(page).click()
    expect(said(page)).to_have_text([KEYS, "@jack are you there?", "I can't wait."])
    divider = page.locator(".chat-divider + .chat-message .chat-text")
    expect(divider).to_have_text(KEYS)
    expect(page.locator("mark.me")).to_have_text("@jack")
    expect(item(page)).to_have_accessible_name(re.compile(r"I can't wait\.$"))


def test_erased_people_disappear_from_open_pages_and_counts(enter, served, chat):
    joe, jack, jill = (served.ids[name] for name in ("joe", "jack", "jill"))
    chat.add([jill])
    chat.send(jill, "secret one", mentions=[jack])
    chat.send(joe, "kept", mentions=[jack])
    open_page = enter("joe").chat(f"/chat/{chat.id}/")
    expect(said(open_page)).to_have_text([KEYS, "secret one", "kept"])
    chat.send(jill, "secret two", mentions=[jack])
    expect(said(open_page)).to_have_text([KEYS, "secret one", "kept", "secret two"])
    other = Chat.create(jack, title="Elsewhere", text="alone")
    list_page = enter("jack").chat(f"/chat/{other.id}/")
    expect(item(list_page)).to_have_accessible_name(re.compile(r"mentioned\. 4 unread$"))
    held = []
    open_page.route(
        f"**/chats/{chat.id}/messages?*", lambda route: held.append(route.fetch()) or route.abort()
    )

    Inbox(jill).erase()

    expect(said(open_page)).to_have_text([KEYS, "kept"])
    expect(item(list_page)).to_have_accessible_name(re.compile(r"mentioned\. 2 unread$"))
    expect(list_page).to_have_title(re.compile(r"^\(2\) Elsewhere"))
    assert "secret" not in open_page.content() + list_page.content()
    assert held == []  # it was the sync that told


def test_an_answer_that_is_lost_makes_no_second_message(enter, served, chat):
    page = enter("joe").chat(f"/chat/{chat.id}/")
    expect(said(page)).to_have_count(1)
    lost = []

    def lose(route):
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch())  # the server has it, and nobody hears of it
            return route.abort()
        return route.fallback()

    page.route("**/messages", lose)
    with page.expect_event("requestfailed"):
        say(page, "once")

    expect(said(page)).to_have_text([KEYS, "once"])
    expect(page.locator(".pending")).to_have_count(0)
    assert lost[0].status == 201
    assert stored(chat, served.ids["joe"]) == [KEYS, "once"]


def test_messages_written_offline_in_several_tabs_are_sent_once_and_in_order(enter, served, chat):
    jack, first = enter("jack").chat(f"/chat/{chat.id}/"), enter("joe").chat(f"/chat/{chat.id}/")
    second = first.context.new_page()
    second.goto(first.url)
    second.locator(LIVE).wait_for()
    first.context.set_offline(True)

    texts = [f"offline {number}" for number in range(4)]
    for number, text in enumerate(texts):
        say(second if number % 2 else first, text)
        expect(said(first)).to_have_count(number + 2)
    for page in (first, second):
        expect(said(page)).to_have_text([KEYS, *texts])
        expect(page.locator(".pending")).to_have_count(4)
    say(jack, "meanwhile")
    expect(jack.locator(".chat-message:not(.pending) .chat-text")).to_have_text([KEYS, "meanwhile"])
    first.context.set_offline(False)

    for page in (first, second, jack):
        expect(said(page)).to_have_text([KEYS, "meanwhile", *texts])
        expect(page.locator(".pending")).to_have_count(0)
    assert stored(chat, served.ids["joe"]) == [KEYS, "meanwhile", *texts]


def test_a_restart_of_the_server_loses_nothing(enter, served, chat):
    joe, jack = enter("joe").chat(f"/chat/{chat.id}/"), enter("jack").chat(f"/chat/{chat.id}/")
    say(joe, "before")
    expect(said(jack)).to_have_text([KEYS, "before"])
    served.stop()

    say(joe, "while it is down")
    say(jack, "me too")
    served.start()
    say(joe, "after")

    texts = {KEYS, "before", "while it is down", "me too", "after"}
    expect(said(jack)).to_have_count(len(texts))
    expect(said(joe)).to_have_count(len(texts))
    in_order = stored(chat, served.ids["joe"])
    assert len(in_order) == len(texts)
    assert set(in_order) == texts
    for page in (joe, jack):
        expect(page.locator(".pending")).to_have_count(0)
        expect(said(page)).to_have_text(in_order)


def test_a_message_refused_by_the_server_stays_and_can_be_edited(enter, served, chat):
    window = enter("joe")
    page = window.chat(f"/chat/{chat.id}/")
    say(page, "x" * 4_001)
    expect(page.locator(".chat-fate")).to_contain_text("Not sent.")
    window.complaints.clear()  # the browser notes the status 422

    say(page, "short")
    expect(said(page)).to_have_text([KEYS, "short", "x" * 4_001])
    page.get_by_role("button", name="Edit").click()
    expect(composer(page)).to_have_value("x" * 4_001)
    composer(page).press("Control+Home")
    say(page, "shorter")

    expect(said(page)).to_have_text([KEYS, "short", "shorter"])


def test_the_history_is_loaded_above_and_nothing_moves(enter, served, chat):
    chat.configure(rate_limit=0)
    for number in range(130):
        chat.send(served.ids["jack"], f"number {number}.")
    chat.acknowledge(served.ids["joe"], chat.news(served.ids["joe"]).last_seq)
    page = enter("joe").chat(f"/chat/{chat.id}/")
    expect(said(page)).to_have_count(50)
    scroller = page.locator(".chat-scroller")
    assert page.evaluate("() => document.querySelector('.chat-scroller').scrollTop") == 0
    row = page.get_by_text("number 85.", exact=True)

    row.evaluate("node => node.scrollIntoView({ block: 'start' })")
    before = row.bounding_box()["y"]
    expect(said(page)).to_have_count(100)
    expect(scroller).to_have_attribute("aria-busy", "false")
    assert row.bounding_box()["y"] == pytest.approx(before, abs=2)

    chat.send(served.ids["jack"], "new below")
    expect(item(page)).to_have_accessible_name(re.compile("1 unread$"))
    assert row.bounding_box()["y"] == pytest.approx(before, abs=2)
    expect(page.get_by_role("log")).to_have_text(re.compile("new below"))
    page.get_by_role("button", name="Newest").click()
    expect(item(page)).to_have_accessible_name(re.compile("new below$"))
    assert chat.news(served.ids["joe"]).unread == 0 or eventually(
        lambda: not chat.news(served.ids["joe"]).unread
    )


def test_an_edited_message_changes_on_all_open_pages(enter, served, chat):
    joe, jack = enter("joe").chat(f"/chat/{chat.id}/"), enter("jack").chat(f"/chat/{chat.id}/")
    expect(said(jack)).to_have_text([KEYS])

    composer(joe).fill("a draft")
    act(joe, KEYS, "Edit")
    expect(composer(joe)).to_have_value(KEYS)
    composer(joe).press("Escape")
    expect(composer(joe)).to_have_value("a draft")
    composer(joe).fill("")
    composer(joe).press("ArrowUp")
    say(joe, "Who has the keys, @jack?")

    for page in (joe, jack):
        expect(said(page)).to_have_text(["Who has the keys, @jack?"])
        expect(page.locator(".chat-edited")).to_have_text("edited")
    expect(composer(joe)).to_have_value("")
    expect(jack.locator(".chat-text mark.me")).to_have_text("@jack")
    expect(item(jack)).to_have_accessible_name(re.compile(r"joe: Who has the keys, @jack\?$"))
    assert stored(chat, served.ids["jack"]) == ["Who has the keys, @jack?"]


def test_a_reply_quotes_the_message_and_leads_to_it(enter, served, chat):
    chat.configure(rate_limit=0)
    for number in range(150):
        chat.send(served.ids["jack"], f"number {number}.")
    jack, joe = enter("jack").chat(f"/chat/{chat.id}/"), enter("joe").chat(f"/chat/{chat.id}/?message=2")
    wanted = joe.locator(".chat-message.wanted")
    expect(wanted.locator(".chat-text")).to_have_text(KEYS)
    expect(wanted).to_be_focused()
    expect(wanted).to_be_in_viewport()
    assert chat.news(served.ids["joe"]).unread > 130  # what is not in sight is not read

    act(joe, KEYS, "Reply to")
    expect(composer(joe)).to_be_focused()
    say(joe, "Nobody?")
    for page in (joe, jack):
        expect(said(page).last).to_have_text("Nobody?")
        expect(page.locator(".chat-message .chat-quote").last).to_have_text(f"joe {KEYS}")
    expect(joe.locator(".chat-replying")).to_be_hidden()
    assert chat.history(served.ids["joe"]).messages[-1].reply_to.seq == 2

    jack.locator("a.chat-quote").click()
    expect(jack.locator(".chat-message.wanted .chat-text")).to_have_text(KEYS)
    assert jack.url.endswith(f"/chat/{chat.id}/?message=2")
    jack.get_by_role("button", name="Newest").click()
    expect(said(jack).last).to_be_in_viewport()
    expect(said(jack).last).to_have_text("Nobody?")

    chat.delete_message(2)
    expect(joe.locator(".chat-quote.gone")).to_have_text("Reply to a message that is no longer there")


def test_the_keyboard_is_enough(enter, served, chat):
    for title in ("Alpha", "Beta"):
        Chat.create(served.ids["joe"], members=[served.ids["jack"]], title=title, text="hi")
    page = enter("joe").chat(f"/chat/{chat.id}/")
    expect(said(page)).to_have_count(1)

    composer(page).focus()
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two @ja")
    expect(page.get_by_role("option", name="jack")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    page.keyboard.type("c")
    expect(page.get_by_role("listbox")).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(said(page)).to_have_text([KEYS, "one\ntwo @jack"], use_inner_text=True)
    expect(page.locator(".chat-item").first).to_contain_text("Keepers")  # the sync has moved it up
    _, second, last = page.locator(
        ".chat-item-title"
    ).all_inner_texts()  # made in one millisecond, either may be first

    page.keyboard.press("Escape")
    expect(item(page, "Keepers")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(item(page, second)).to_be_focused()
    page.keyboard.press("End")
    expect(item(page, last)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2, name=last)).to_be_visible()
    expect(composer(page)).to_be_focused()
    page.go_back()
    expect(page.get_by_role("heading", level=2, name="Keepers")).to_be_visible()


def test_a_logged_out_person_is_told_and_keeps_their_text(enter, served, chat):
    window = enter("joe")
    page = window.chat(f"/chat/{chat.id}/")
    expect(said(page)).to_have_count(1)

    page.context.clear_cookies()
    say(page, "not lost")
    chat.send(served.ids["jack"], "wakes the sync")

    expect(status(page)).to_contain_text("You are logged out.")
    expect(said(page)).to_contain_text([KEYS, "not lost"])


# Presence, typing and the search

SPOKEN = """() => {
    const region = document.querySelector(".chat-typing + [role=status]");
    window.said = [];
    new MutationObserver(() => window.said.push(region.textContent)).observe(region, { childList: true });
}"""


def here(page):
    return page.locator(".chat-here")


def typing(page):
    return page.locator(".chat-typing")


def test_two_people_see_each_other_come_type_send_and_go(enter, served, chat):
    joe, jack = enter("joe"), enter("jack")
    jacks = jack.chat(f"/chat/{chat.id}/")
    assert eventually(lambda: Presence(chat.id).look(served.ids["joe"]).count == 1)
    page = joe.chat(f"/chat/{chat.id}/")
    expect(here(page)).to_have_text("Here now: jack")
    page.evaluate(SPOKEN)

    composer(jacks).press_sequentially("I h")
    expect(typing(page)).to_have_text("jack is typing…")
    expect(typing(jacks)).to_be_empty()
    assert page.evaluate("() => window.said") == ["jack is typing…"]
    composer(jacks).press_sequentially("ave it")
    composer(jacks).press("Enter")
    expect(said(page)).to_have_text([KEYS, "I have it"])
    expect(typing(page)).to_be_empty()

    composer(jacks).press_sequentially("or not")
    expect(typing(page)).to_have_text("jack is typing…")
    assert page.evaluate("() => window.said") == ["jack is typing…", ""]  # not again so soon
    expect(typing(page)).to_be_empty()  # after six seconds without a key
    assert stored(chat, served.ids["joe"]) == [KEYS, "I have it"]
    composer(page).press_sequentially("so")
    expect(here(jacks)).to_have_text("Here now: joe")  # whoever types wakes those who wait
    chat.kick(served.ids["jack"])
    expect(jacks.locator("#chat[data-view=list]")).to_have_count(1)
    assert Presence(chat.id).look(served.ids["joe"]).count == 0
    assert joe.complaints == []


def test_a_search_leads_to_the_message_with_scripts_and_without(enter, served, chat):
    for number in range(130):
        chat.configure(rate_limit=0)
        chat.send(served.ids["jack"], f"text {number}")
    for options in ({}, {"java_script_enabled": False}):
        joe = enter("joe", viewport={"width": 390, "height": 800}, **options)
        page = joe.open(f"/chat/{chat.id}/")
        if not options:
            page.locator("#chat[data-live]").wait_for()
        page.get_by_role("link", name="Search in this chat").click()
        field = page.get_by_role("searchbox", name="Words in the messages")
        field.fill("ke")
        field.press("Enter")
        expect(page.locator(".chat-found mark")).to_have_text(["key"])
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        if not options:
            assert_accessible(page)
        page.locator(".chat-found a").click()
        expect(page.locator(".chat-message.wanted .chat-text")).to_have_text(KEYS)
        assert joe.complaints == []


# Names: "@" offers the members

ANN, ANNA, ELODIE = "901", "902", "903"
NAMES = {ANN: "Ann", ANNA: "Ann Smith", ELODIE: "Élodie"}


def offered(page):
    """The names that are offered, the initials before them left out."""
    return page.locator("[role=option] .complete-label")


def active(page):
    return page.locator("[role=option][aria-selected=true] .complete-label")


def mentions(chat, user):
    return [message.mentions for message in chat.history(user).messages if message.sender == user]


@pytest.fixture
def named(enter, served, chat):
    """Joe's page of the chat, in which some have names that no user of this site has; it complains of nothing."""
    window = enter("joe")
    chat.add([served.ids["jill"], *NAMES])
    names = {**{id: name for name, id in served.ids.items()}, **NAMES}

    def name(route):
        told = route.fetch().json()
        route.fulfill(json={"members": [{**each, "name": names[each["id"]]} for each in told["members"]]})

    window.page.route("**/members?*", name)
    yield window.chat(f"/chat/{chat.id}/")
    assert window.complaints == []


def test_a_member_is_mentioned_by_keys_alone(named, served, chat):
    page = named
    composer(page).focus()
    page.keyboard.type("hi @")
    expect(offered(page)).to_have_text(["Ann", "Ann Smith", "Élodie", "jack", "jill"])
    expect(active(page)).to_have_text("Ann")
    page.keyboard.type("el")
    expect(offered(page)).to_have_text(["Élodie"])
    expect(page.locator(".chat-composer mark")).to_have_text("Él")
    page.keyboard.press("Tab")
    expect(composer(page)).to_have_value("hi @Élodie ")
    expect(composer(page)).to_be_focused()

    page.keyboard.type("and @sm")
    expect(offered(page)).to_have_text(["Ann Smith"])
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    for _ in "@sm":
        page.keyboard.press("Backspace")
    page.keyboard.type("@ann s")
    expect(offered(page)).to_have_text(["Ann Smith"])
    page.keyboard.press("Enter")
    expect(composer(page)).to_have_value("hi @Élodie and @Ann Smith ")
    page.keyboard.press("Enter")

    expect(page.locator(".chat-message:not(.pending) .chat-text").last).to_have_text(
        "hi @Élodie and @Ann Smith"
    )
    joe = served.ids["joe"]
    assert mentions(chat, joe)[-1] == (ELODIE, ANNA)
    assert eventually(lambda: [each.id for each in RecentContacts(joe).list()] == [ELODIE, ANNA])


def test_scripts_find_the_mentions_that_the_server_finds(enter):
    find = """async (texts) => {
        const { mentionsIn } = await import("/static/components/chat/mentions.js");
        return texts.filter((text) => mentionsIn(text, [{ id: "1", name: "jack" }]).length);
    }"""
    assert enter("joe").chat("/chat/").evaluate(find, MENTIONING + SILENT) == MENTIONING


#: Keys that come faster than any answer: what is in the text area after each.
TYPED = """(node, texts) => {
    for (const text of texts) {
        node.value = text;
        node.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
}"""


def test_members_of_a_large_chat_are_searched_when_typing_pauses(enter, served):
    large = Chat.create(served.ids["joe"], members=[f"p{number:03}" for number in range(220)], text="hi")
    page = enter("joe").chat(f"/chat/{large.id}/")
    asked = []
    page.on(
        "request", lambda request: "/members?" in request.url and asked.append(request.url.partition("?")[2])
    )
    composer(page).focus()
    composer(page).evaluate(TYPED, ["@", "@p", "@p2", "@p21"])
    expect(offered(page)).to_have_text([f"p21{digit}" for digit in range(8)])
    assert asked == ["limit=9&q=p21"]
    page.keyboard.type("9")
    expect(offered(page)).to_have_text(["p219"])
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator(".chat-message:not(.pending) mark")).to_have_text("@p219")
    assert mentions(large, served.ids["joe"])[-1] == ("p219",)
