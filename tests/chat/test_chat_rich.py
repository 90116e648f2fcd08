"""The formatting of messages: what is formatted, what stays text, and that nothing gets out of it."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.services.chat.page.texts import formatted
from components.services.chat.rich import TAGS, Node, plain, rich
from tests.browser.payloads import PAYLOADS

BOOK = "https://example.com/book"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", []),
        ("plain", ["plain"]),
        ("two\nlines", ["two\nlines"]),
        ("**bold** and *it*", [["strong", "bold"], " and ", ["em", "it"]]),
        ("_it_ ~~gone~~", [["em", "it"], " ", ["del", "gone"]]),
        ("**a *b* c**", [["strong", "a ", ["em", "b"], " c"]]),
        ("say `**no**` here", ["say ", ["code", "**no**"], " here"]),
        ("2*3*4 = 24, snake_case_name", ["2*3*4 = 24, snake_case_name"]),
        ("no * no * and ** none **", ["no * no * and ** none **"]),
        ("*not\nhere*", ["*not\nhere*"]),
        (r"\*plain\* \`x\`", ["*plain* `x`"]),
        (f"see {BOOK}.", ["see ", ["a", BOOK, BOOK], "."]),
        (f"[the book]({BOOK})", [["a", BOOK, "the book"]]),
        (f"**[the book]({BOOK})**", [["strong", ["a", BOOK, "the book"]]]),
        (f"[{BOOK}]({BOOK})", [["a", BOOK, BOOK]]),
        ("[https://bank.example](https://evil.example)", ["[https://bank.example](https://evil.example)"]),
        ("[www.bank.example](https://evil.example)", ["[www.bank.example](https://evil.example)"]),
        ("[x](javascript:alert(1))", ["[x](javascript:alert(1))"]),
        ("![x](https://evil.example/x.png)", ["!", ["a", "https://evil.example/x.png", "x"]]),
        ("https:// http://.", ["https:// http://."]),
        ("> said\n> **so**\nno", [["blockquote", "said\n", ["strong", "so"]], "no"]),
        ("buy:\n- eggs\n- *milk*\nnow", ["buy:", ["ul", ["li", "eggs"], ["li", ["em", "milk"]]], "now"]),
        ("1. one\n2) two\n4. four", [["ol", ["li", "one"], ["li", "two"]], "4. four"]),
        ("2026. A year.", ["2026. A year."]),
        ("```py\na = '<b>'\n\n*x*\n```\nend", [["pre", "a = '<b>'\n\n*x*"], "end"]),
        ("```\nopen", ["```\nopen"]),
        ("<b>no</b> &amp;", ["<b>no</b> &amp;"]),
        ("*a* *b*", [["em", "a"], " ", ["em", "b"]]),
    ],
)
def test_the_tree_of_a_message(text: str, tree: list[Node]) -> None:
    assert rich(text) == tree


def test_marks_in_marks_end_somewhere() -> None:
    deep = "**a *b ~~c _d **e** d_ c~~ b* a**"

    assert "e" in plain(rich(deep))
    assert str(rich(deep)).count("[") <= 7


class Reader(HTMLParser):
    """Reads HTML as a browser does."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.open = "", list[str]()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def assert_safe(text: str) -> None:
    tree = rich(text)
    read = Reader(str(formatted(tree)))
    assert not read.open
    assert read.text == plain(tree)
    for tag, its in read.tags:
        assert tag in TAGS
        assert its.keys() == ({"href", "rel", "target"} if tag == "a" else set())
        if tag == "a":
            assert re.match(r"https?://[^\s<>\"'`]+$", its["href"] or "", re.IGNORECASE)
            assert (its["rel"], its["target"]) == ("noopener noreferrer nofollow ugc", "_blank")


#: Texts of what has a meaning to Markdown or HTML.
_words = st.sampled_from(
    [*"*_~`[]()<>&\"'\\!#-. \n\t", "**", "~~", "```", "> ", "- ", "1. ", "a", "b c", "https://x.example/a?b=1",
     "javascript:alert(1)", "<script>", "</div>", "](https://", "onclick=", "\u202e", "&lt;"]
)  # fmt: skip


@given(st.lists(_words, max_size=40).map("".join) | st.text(max_size=200))
def test_nothing_gets_out_of_a_message(text: str) -> None:
    assert_safe(text)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_texts_are_inert(payload: str) -> None:
    assert_safe(payload)
    assert_safe(f"**{payload}** [{payload}](https://x.example/) > {payload}")


@given(st.lists(_words, max_size=40).map("".join))
def test_the_words_of_a_message_stay(text: str) -> None:
    """Only marks go, and the addresses of links with a text."""
    letters = [c for c in re.sub(r"\]\(https?://[^\s]*|```\S*", "", text) if c.isalnum() and not c.isdigit()]
    rest: Any = iter(plain(rich(text)))

    assert all(letter in rest for letter in letters)


@pytest.mark.parametrize(
    "mark", ["**a ", "_a ", "[a", "```x\n", "> ", "- ", "*", "_", "`", "~~", "https://", "*_", "\\"]
)
def test_no_text_takes_long(mark: str) -> None:
    begun = time.process_time()

    rich(mark * (40_000 // len(mark)))

    assert time.process_time() - begun < 5  # it takes less than half a second
