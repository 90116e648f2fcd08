"""Names in the chat page, in a real browser: whom one writes to is offered, and "@" offers the members."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from components.services.autocomplete import RecentContacts
from components.services.chat import Chat, Inbox
from tests.support.waiting import eventually

ANN, ANNA, ELODIE = "901", "902", "903"
NAMES = {ANN: "Ann", ANNA: "Ann Smith", ELODIE: "Élodie"}


@pytest.fixture
def chat(served):
    people = [served.ids["jack"], served.ids["jill"], *NAMES]
    return Chat.create(served.ids["joe"], members=people, title="Keepers", text="Who has the key?")


@pytest.fixture
def opened(enter, served, chat):
    """Joe's page of the chat, in which some have names that no user of this site has; it complains of nothing."""
    window = enter("joe")
    names = {**{id: name for name, id in served.ids.items()}, **NAMES}

    def named(route):
        told = route.fetch().json()
        members = [{**each, "name": names[each["id"]]} for each in told["members"]]
        route.fulfill(json={"members": members})

    window.page.route("**/members?*", named)
    window.chat(f"/chat/{chat.id}/")
    composer(window.page).focus()
    yield window
    assert window.complaints == []


def composer(page):
    return page.get_by_role("textbox", name="Message to")


def offered(page):
    """The names that are offered, the initials before them left out."""
    return page.locator("[role=option] .complete-label")


def active(page):
    return page.locator("[role=option][aria-selected=true] .complete-label")


def mentions(chat, user):
    return [message.mentions for message in chat.history(user).messages if message.sender == user]


@pytest.mark.slow
def test_recent_contacts_are_offered_for_the_next_chat(enter, served):
    joe, jack, jill = (served.ids[name] for name in ("joe", "jack", "jill"))
    of_two = Chat.create(jack, members=[joe], title="Two", text="hi")
    window = enter("joe")
    page = window.chat(f"/chat/{of_two.id}/")
    composer(page).fill("hello")
    composer(page).press("Enter")
    assert eventually(lambda: [each.label for each in RecentContacts(joe).list()] == ["jack"])
    RecentContacts(joe).touch(jill, label="Jill of old")

    page = window.chat("/chat/-/new/")
    whom = page.get_by_role("combobox", name="With whom")
    whom.click()
    expect(offered(page)).to_have_text(["jill", "jack"])
    page.keyboard.type("jac")
    expect(offered(page)).to_have_text(["jack"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(whom).to_have_value("jack, ")
    page.keyboard.type("jill")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=2, name="jack, jill")).to_be_visible()
    [made] = [each for each in Inbox(jill).chats() if each.members == 3]
    assert made.reads.keys() == {joe, jack, jill}
    assert eventually(lambda: [each.label for each in RecentContacts(joe).list()] == ["jack", "jill"])
    page = window.chat(f"/chat/{made.chat_id}/members/")
    page.get_by_role("combobox", name="Add by user name").click()
    expect(offered(page)).to_have_text(["jack", "jill"])
    assert window.complaints == []


@pytest.mark.slow
def test_a_member_is_mentioned_by_keys_alone(opened, served, chat):
    page = opened.page
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
    assert mentions(chat, joe)[-1] == (ANNA, ELODIE)
    assert eventually(lambda: [each.id for each in RecentContacts(joe).list()] == [ANNA, ELODIE])


@pytest.mark.slow
def test_the_list_of_members_goes_round_and_tells_itself(opened):
    page = opened.page
    page.keyboard.type("@j")
    expect(active(page)).to_have_text("jack")
    seen = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        seen.append(active(page).text_content())
        option = page.locator("[role=option][aria-selected=true]")
        assert composer(page).get_attribute("aria-activedescendant") == option.get_attribute("id")
    assert seen == ["jill", "jack", "jill"]
    expect(page.locator(".chat-composer")).to_match_aria_snapshot("""
        - listbox "Members":
          - option "jack"
          - option "jill" [selected]
        - textbox "Message to Keepers": "@j"
    """)
    told = page.locator(".chat-composer [role=status]")
    expect(told.filter(has_text="2 members. Up and down arrows choose")).to_have_count(1)

    page.locator("[role=option]").first.click()
    expect(composer(page)).to_have_value("@jack ")
    expect(composer(page)).to_be_focused()
    assert composer(page).get_attribute("aria-activedescendant") is None


@pytest.mark.slow
def test_names_are_offered_only_while_a_name_is_typed(opened, served, chat):
    page = opened.page
    listbox = page.get_by_role("listbox")
    for text in ("@@", "me@j", "@ j", "@ann ", "@jacky", "@jack?"):
        composer(page).fill("")
        page.keyboard.type(text)
        expect(composer(page)).to_have_value(text)
        (expect(offered(page)).to_have_count(5) if text == "@@" else expect(listbox).to_be_hidden())
    composer(page).fill("")
    page.keyboard.type("@ann")
    page.keyboard.press("Enter")
    page.keyboard.type("s")
    expect(composer(page)).to_have_value("@Ann s")
    expect(listbox).to_be_hidden()  # he was taken, and is not "Ann Smith"
    for _ in "n s":
        page.keyboard.press("Backspace")
    expect(offered(page)).to_have_text(["Ann", "Ann Smith"])
    composer(page).fill("tell  that")
    for _ in " that":
        page.keyboard.press("ArrowLeft")
    page.keyboard.type("@jil")
    page.keyboard.press("Enter")
    expect(composer(page)).to_have_value("tell @jill that")
    page.keyboard.press("Enter")
    expect(composer(page)).to_have_value("")

    page.keyboard.type("@ja")
    expect(active(page)).to_have_text("jack")
    composer(page).click()
    expect(listbox).to_be_hidden()
    page.keyboard.press("Enter")

    expect(page.locator(".chat-message:not(.pending) .chat-text").last).to_have_text("@ja")
    assert mentions(chat, served.ids["joe"])[-2:] == [(served.ids["jill"],), ()]


@pytest.mark.slow
def test_text_in_an_input_method_is_not_a_name_yet(opened):
    page = opened.page
    page.keyboard.type("@")
    expect(offered(page)).to_have_count(5)
    method = page.context.new_cdp_session(page)
    for text in ("j", "ji"):
        method.send(
            "Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)}
        )
    expect(composer(page)).to_have_value("@ji")
    expect(offered(page)).to_have_count(5)

    method.send("Input.insertText", {"text": "jil"})

    expect(offered(page)).to_have_text(["jill"])


def test_a_keyboard_of_a_touch_screen_composes_all_and_is_offered_names(enter, chat):
    page = enter("joe", has_touch=True, is_mobile=True, viewport={"width": 390, "height": 600}).chat(
        f"/chat/{chat.id}/"
    )
    composer(page).tap()
    page.keyboard.type("@")
    method = page.context.new_cdp_session(page)
    method.send("Input.imeSetComposition", {"text": "ji", "selectionStart": 2, "selectionEnd": 2})
    expect(offered(page)).to_have_text(["jill"])
    assert page.get_by_role("option").bounding_box()["height"] >= 44

    page.get_by_role("option").tap()

    expect(composer(page)).to_have_value("@jill ")
    expect(page.get_by_role("listbox")).to_be_hidden()


#: Keys that come faster than any answer: what is in the text area after each.
TYPED = """(node, texts) => {
    for (const text of texts) {
        node.value = text;
        node.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
}"""


@pytest.mark.slow
def test_members_of_a_large_chat_are_searched_when_typing_pauses(enter, served):
    large = Chat.create(served.ids["joe"], members=[f"p{number:03}" for number in range(220)], text="hi")
    page = enter("joe").chat(f"/chat/{large.id}/")
    asked, held = [], []
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

    page.route("**/members?*q=p0", lambda route: held.append(route))
    with page.expect_request("**/members?*q=p0"):
        page.keyboard.type("@p0")
    page.keyboard.press("Backspace")
    page.keyboard.type("1")
    expect(offered(page)).to_have_text([f"p10{digit}" for digit in range(8)])
    with page.expect_response("**/members?*q=p0"):
        held[0].fulfill(json={"members": [{"id": "p000", "name": "p000"}]})
    page.wait_for_function("() => new Promise((done) => setTimeout(() => done(true), 50))")
    expect(offered(page)).to_have_text([f"p10{digit}" for digit in range(8)])


def test_without_the_network_those_are_offered_who_are_known(enter, served):
    few = Chat.create(served.ids["joe"], members=[served.ids["jack"]], text="hi")
    page = enter("joe").chat(f"/chat/{few.id}/")
    page.route("**/members?*", lambda route: route.abort())
    composer(page).focus()
    page.keyboard.type("@")
    expect(offered(page)).to_have_text(["jack"])
