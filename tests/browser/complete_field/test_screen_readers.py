"""What those get who do not see the list: the tree of the browser, and what is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.clock import stop_clock
from tests.browser.complete_field.parts import debugger, field, options


@dataclass
class Node:
    """One of the tree that a screen reader is given."""

    role: str
    name: str
    value: str
    properties: dict[str, Any]
    #: The element that stands for it.
    backend: int


def tree(page: Page) -> list[Node]:
    session = debugger(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [
        Node(
            role=node["role"]["value"],
            name=node.get("name", {}).get("value", ""),
            value=node.get("value", {}).get("value", ""),
            properties={each["name"]: each["value"] for each in node.get("properties", [])},
            backend=node.get("backendDOMNodeId", 0),
        )
        for node in nodes
        if not node["ignored"]
    ]


def of_role(nodes: list[Node], role: str) -> list[Node]:
    return [node for node in nodes if node.role == role]


def related(node: Node, name: str) -> list[int]:
    """The elements that the property *name* points at."""
    return [each["backendDOMNodeId"] for each in node.properties.get(name, {}).get("relatedNodes", [])]


def test_the_tree_says_what_is_open_and_what_is_active(opened: Any) -> None:
    page = opened()
    [closed] = of_role(tree(page), "combobox")
    assert (closed.name, closed.properties["expanded"]["value"]) == ("To:", False)
    assert closed.properties["hasPopup"]["value"] == "listbox"
    assert closed.properties["autocomplete"]["value"] == "list"
    assert of_role(tree(page), "listbox") == of_role(tree(page), "option") == []

    field(page).focus()
    page.keyboard.type("jen")
    expect(options(page)).to_have_count(2)
    nodes = tree(page)
    [combobox], [listbox] = of_role(nodes, "combobox"), of_role(nodes, "listbox")
    assert (combobox.value, combobox.properties["expanded"]["value"]) == ("jen", True)
    assert combobox.properties["focused"]["value"] is True
    assert related(combobox, "controls") == [listbox.backend]
    assert related(combobox, "activedescendant") == []
    assert listbox.name == "To:"
    assert [node.name for node in of_role(nodes, "option")] == ["Jenny", "Ann Jensen"]

    for chosen in range(2):
        page.keyboard.press("ArrowDown")
        nodes = tree(page)
        selected = [node.properties["selected"]["value"] for node in of_role(nodes, "option")]
        [combobox] = of_role(nodes, "combobox")
        assert selected == [chosen == 0, chosen == 1]
        assert related(combobox, "activedescendant") == [of_role(nodes, "option")[chosen].backend]
        assert combobox.properties["focused"]["value"] is True

    page.keyboard.press("Enter")
    nodes = tree(page)
    [combobox] = of_role(nodes, "combobox")
    assert (combobox.value, combobox.properties["expanded"]["value"]) == ("Ann Jensen", False)
    assert related(combobox, "activedescendant") == []
    assert of_role(nodes, "listbox") == of_role(nodes, "option") == []


def test_two_regions_take_turns_to_tell_how_many_there_are_also_twice_alike(opened: Any) -> None:
    page = opened()
    stop_clock(page)
    told: list[list[str]] = []

    def listen(seconds: float) -> None:
        page.clock.run_for(seconds * 1000)
        told.append(page.locator("complete-field [role=status]").all_text_contents())

    field(page).focus()
    page.keyboard.type("jen")
    page.clock.run_for(200)
    expect(options(page)).to_have_count(2)
    listen(0.9)  # not while one types, and not at once
    listen(0.2)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    listen(1.1)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    listen(1.1)
    page.keyboard.type("x")
    listen(1.5)
    page.keyboard.press("Backspace")
    page.keyboard.press("Escape")
    listen(1.5)  # what is closed is not told any more

    two = "2 names. Up and down arrows choose, Enter takes."
    assert told[0] == ["", ""]
    assert [text for pair in told[1:4] for text in pair if text] == [two] * 3
    turns = [pair.index(text) for pair in told[1:5] for text in pair if text]
    assert turns in ([0, 1, 0, 1], [1, 0, 1, 0])
    assert told[4][turns[3]] == "No names found."
    assert told[5] == told[4]
    regions = [node for node in tree(page) if node.role == "status"]
    assert [node.properties["live"]["value"] for node in regions] == ["polite"] * 2
    assert [node.properties["atomic"]["value"] for node in regions] == [True] * 2


def test_its_texts_are_those_of_the_catalogue_of_the_page(opened: Any) -> None:
    catalogue = """globalThis.django = {
        jsi18n_initialized: true,
        gettext: (text) => `<${text}>`,
        ngettext: (one, many, count) => `<${count === 1 ? one : many}>`,
    };"""
    page = opened(script=catalogue)
    field(page).focus()
    for text, says in (
        ("jef", "<1 name. Up and down arrows choose, Enter takes.>"),
        ("zzz", "<No names found.>"),
    ):
        field(page).fill(text)
        expect(page.get_by_role("status").filter(has_text=says)).to_have_count(1)
