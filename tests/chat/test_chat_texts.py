"""Search in the history: what is found, for whom, and how much of the history one call examines."""

import re
import time
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import ChatNotFound, InvalidValue
from components.services.autocomplete.folding import fold, spell
from components.services.chat import Chat, ChatSettings, Inbox
from components.services.chat.chat import MAX_LIMIT, SEARCHED
from components.services.chat.page.texts import formatted, mentioned
from components.services.chat.rich import TAGS, Node, plain, rich
from components.services.chat.search import EXCERPT, Search, _fits
from tests.browser.payloads import PAYLOADS
from tests.support.chats import FREE, MENTIONING, SILENT, texts
from tests.support.snapshots import snapshot

#: Letters of which some need the rules of address books, and signs between words.
LETTERS = "abXYzäÖßøłéñіїйЙгґώΣςσ'-_.,*@#+=$€£%&~^`<|(?!§«½²©12\uff12\ufb01\u217b\ud55c\uad6d\u65e5\u672c\u304b\u30ab"  # noqa: RUF001

SIGNED = "5€ $20 £180 C++ Notepad++ C# A&B ½ x² 100% <b> ©"


@pytest.fixture
def chat(redis: Redis) -> Chat:
    return Chat.create("joe", members=["jack"], text="Who has the Schlüssel?", settings=FREE)


def found(chat: Chat, words: str, user: str = "joe") -> list[str]:
    return texts(chat.search(user, words).messages)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Who has the Schlüssel?", "schlussel"),
        ("Who has the Schlüssel?", "SCHLÜ who"),
        ("**Größe**: _straße_", "strasse grosse"),
        ("see https://example.com/guild/rules-2024#seven", "rules 2024"),
        ("see https://example.com/guild/rules-2024#seven", "example.com/guild"),
        ("e-mail me", "email"),
        ("email me", "e-mail"),
        ("Привет, Йожик", "йож"),
        ("Καλημέρα κόσμος", "ΚΟΣΜΟΣ"),
        ("\uff21\uff22\uff23 123", "abc"),
        ("\u6211\u4eec\u4eca\u5929\u53bb\u516c\u56ed", "\u516c\u56ed"),
        ("don't", "dont"),
        *((f"It is ({sign}), or: {sign}.", sign) for sign in SIGNED.split()),
        ("x" * 500 + " end", "end"),
        ("\u6211" * 450 + "\u516c\u56ed" + "\u6211" * 99, "\u516c\u56ed"),
    ],
)
def test_words_are_found_as_address_books_find_names(text: str, words: str) -> None:
    assert Search(words).finds(text)


def test_other_texts_are_not_found() -> None:
    others = {
        "c++": "(c)",
        "5€": "5",
        "$20": "20",
        "key board": "the keys",
        "key": "monkey",
        "keys": "keep",
        "#tags": "#tag",
        "word": "",
    }
    assert not any(Search(words).finds(text) for words, text in others.items())


@given(st.text(LETTERS, min_size=1, max_size=6), st.text(LETTERS, min_size=1, max_size=3))
def test_the_short_way_finds_what_the_rules_of_address_books_find(word: str, wanted: str) -> None:
    assert bool(Search(wanted)._compare(word)) == _fits(spell(word), spell(wanted))


@pytest.mark.parametrize(
    "words", ["", "   ", "\u200b", "a b c d e f g h i", "x" * 201, "a\0", "\ud800", "/", None]
)
def test_a_search_needs_words(redis: Redis, chat: Chat, words: str) -> None:
    before = snapshot(redis)

    with pytest.raises(InvalidValue):
        chat.search("joe", words)

    assert snapshot(redis) == before


@given(st.text(max_size=600), st.text("key ß", min_size=1, max_size=9))
def test_an_excerpt_is_a_part_of_the_text(text: str, words: str) -> None:
    if not words.strip():
        return
    pieces = Search(words).excerpt(text)

    shown = "".join(piece for piece, _is_found in pieces)
    assert shown.strip("…") in text or text in shown
    assert len(shown) <= EXCERPT + 2
    assert all(
        Search(words)._matches(piece) for piece, is_found in pieces if is_found and len(text) < EXCERPT
    )


def test_an_excerpt_shows_words_with_their_signs() -> None:
    assert Search("c++ $20").excerpt("(C++) for $20.")[1::2] == [("C++", True), ("$20", True)]


def test_an_excerpt_begins_near_the_first_word_that_was_found() -> None:
    pieces = Search("key").excerpt("a" * 99 + " the keys are here " + "b " * 200)

    assert [piece for piece, is_found in pieces if is_found] == ["keys"]
    assert (pieces[0], pieces[-1]) == (("…", False), ("…", False))


def test_messages_are_found_newest_first_and_in_pages(chat: Chat) -> None:
    for number in range(5):
        chat.send("jack", f"key {number}")

    first = chat.search("joe", "key", limit=2)
    second = chat.search("joe", "key", limit=2, before=first.next)
    third = chat.search("joe", "key", limit=2, before=second.next)

    assert texts(first.messages) == ["key 4", "key 3"]
    assert texts(second.messages) == ["key 2", "key 1"]
    assert (texts(third.messages), third.next) == (["key 0"], None)
    with pytest.raises(ValueError, match="limit"):
        chat.search("joe", "key", limit=201)
    with pytest.raises(ValueError, match="before"):
        chat.search("joe", "key", before=-1)


def test_one_call_examines_a_part_and_says_where_to_go_on(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (SEARCHED, MAX_LIMIT) == (10, 200)
    monkeypatch.setattr("components.services.chat.chat.MAX_LIMIT", 20)
    for number in range(250):
        chat.send("jack", f"text {number}")

    nothing = chat.search("joe", "schlussel")
    assert (nothing.messages, nothing.next) == ([], 53)
    rest = chat.search("joe", "schlussel", before=nothing.next)
    assert (texts(rest.messages), rest.next) == (["Who has the Schlüssel?"], None)
    monkeypatch.setattr("components.services.chat.chat.SECONDS", 0)
    assert [chat.search("joe", "text", before=before).next for before in (4, 3, 2)] == [3, 2, None]
    monkeypatch.undo()
    for _ in range(200):
        chat.send("jack", "word " * 799)
    looked = chat.search("joe", "schlussel").next
    assert looked is not None
    assert 280 < looked < 310  # ten answers of 64 KiB


def test_only_what_a_member_may_read_is_found(redis: Redis) -> None:
    chat = Chat.create("joe", text="key one", settings=ChatSettings(history=1, is_open=True, rate_limit=0))
    chat.send("joe", "key two")
    chat.join("jack")
    chat.send("joe", "key three")

    assert found(chat, "key") == ["key three", "key two", "key one"]
    assert found(chat, "key", "jack") == ["key three", "key two"]
    chat.mute("jack")
    assert found(chat, "key", "jack") == ["key three", "key two"]  # whoever is muted can read
    chat.kick("jack")
    for stranger in ("jack", "jill"):
        with pytest.raises(ChatNotFound):
            chat.search(stranger, "key")
    with pytest.raises(ChatNotFound):
        Chat("nowhere").search("joe", "key")


def test_the_present_text_is_searched_and_nothing_that_is_gone(chat: Chat) -> None:
    chat.send("jack", "gold")
    chat.send("jack", "gold too")
    chat.edit("jack", 3, "silver")
    chat.delete_message(4)
    chat.rename("Silver and gold")  # events have no text

    assert (found(chat, "gold"), found(chat, "silver")) == ([], ["silver"])
    Inbox("jack").erase()
    assert found(chat, "silver") == []


def test_a_mention_is_neither_code_nor_an_address() -> None:
    assert [text for text in MENTIONING + SILENT if mentioned(text, {"1": "jack"})] == MENTIONING


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
        (r"\*plain\* \`x\` \@x", ["*plain* `x` @x"]),
        (f"see {BOOK}.", ["see ", ["a", BOOK, BOOK], "."]),
        (f"[the book]({BOOK})", [["a", BOOK, "the book"]]),
        (f"**[the book]({BOOK})**", [["strong", ["a", BOOK, "the book"]]]),
        (f"[{BOOK}]({BOOK})", [["a", BOOK, BOOK]]),
        ("[x](javascript:alert(1))", ["[x](javascript:alert(1))"]),
        ("![x](https://evil.example/x.png)", ["!", ["a", "https://evil.example/x.png", "x"]]),
        ("https:// http://.", ["https:// http://."]),
        ("xhttps://x.example http://a_b http://", ["xhttps://x.example http://a_b http://"]),
        (r"[x](https://a.example/b_(c))", [["a", "https://a.example/b_(c)", "x"]]),
        ("**https://x.example/a**", [["strong", ["a", "https://x.example/a", "https://x.example/a"]]]),
        ("see www... or www.)", ["see www... or www.)"]),
        ("@_jack_ @__jack__", ["@_jack_ @__jack__"]),
        ("www.x.example/a. www.x", [["a", "http://www.x.example/a", "www.x.example/a"], ". www.x"]),
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


@pytest.mark.parametrize(
    ("address", "after"),
    [
        ("https://w.example/Terminator_(franchise)", ""),
        ("https://w.example/Terminator_(franchise)", "), and"),
        ("https://w.example/Hobson's_choice", "' he"),
        ("https://w.example/a?b=c(d)&e=[f]", "]."),
        ("https://w.example/a;b", ";"),
        ("https://w.example/?q=a", "&amp;."),
        ("https://w.example/a", "**_~"),
        ("https://w.example/a~b_c*d-", ""),
        ("http://localhost:8000/a", "!"),
        ("http://[::1]:8000/", ""),
        ("https://пример.example/путь", "».\u2026"),
        ("https://w.example/東京_(曖昧)", "\uff09\u3068"),
        ("https://w.example/東京", "\u3002看"),
        ("https://w.example/東京\uff08x\uff09", "\uff01"),
        ("https://w.example/a", "\u300d\u3068"),
        ("https://उदाहरण.example/अ", "\u0964"),
        ("https://w.example/مثال", "\u061f"),
        ("https://w.example/a", "\u2014"),
        ("https://w.example/a", "\u202eb"),
    ],
)
def test_an_address_ends_where_its_sentence_goes_on(address: str, after: str) -> None:
    assert rich(f"看{address}{after}") == ["看", ["a", address, address], *([after] if after else [])]


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
            assert re.match(r"https?://[^\s<>\"`]+$", its["href"] or "", re.IGNORECASE)
            assert (its["rel"], its["target"]) == ("noopener noreferrer nofollow ugc", "_blank")


#: Texts of what has a meaning to Markdown or HTML.
_words = st.sampled_from(
    [*"*_~`[]()<>&\"'\\!#-. \n\t", "**", "~~", "```", "> ", "- ", "1. ", "a", "b c", "www", "https://x.example/a?b=1",
     "javascript:alert(1)", "<script>", "</div>", "](https://", "onclick=", "\u202e", "&lt;"]
)  # fmt: skip


@given(st.lists(_words, max_size=40).map("".join) | st.text(max_size=200))
def test_nothing_gets_out_of_a_message(text: str) -> None:
    assert_safe(text)


@pytest.mark.parametrize(
    ("label", "address"),
    [
        *((label, "https://evil.example/") for label in (
            "https://bank.com", "www.bank.com", "bank.com", "bank.com ", "log in at bank.com, now", "bank.com/x",
            "bank.com:443", "localhost:8000", "192.0.2.1", "//bank", "user@bank.com", "BANK.COM", "(bank.com)",
            "https\uff1a//bank.com", "bank\uff0ecom", "bank\u3002com", "https:\uff0f\uff0fbank", "ba\u200bnk.com",
            "b\u0430nk.com", "xn--bnk-7cd.com", "\u043f\u0440\u0438.\u0440\u0444",
            "\u202emoc.knab", "bank\u2024com",
        )),
        ("bank.com", "https://bank.com.evil.example/"),
        ("bank.com", "https://bank.com@evil.example/"),
        ("bank.com", "https://bank.com:pw@evil.example/"),
        ("bank.com", "https://evil.example/bank.com"),
        ("bank.com/login", "https://bank.com/else"),
        ("own.com or bank.com", "https://own.com/"),
    ],
)  # fmt: skip
def test_a_link_that_reads_as_another_address_stays_text(label: str, address: str) -> None:
    assert rich(f"[{label}]({address})")[0] == f"[{label}]({address})"


@pytest.mark.parametrize(
    ("label", "address"),
    [
        *((label, "https://www.bank.com/login?a=b") for label in (
            "my bank", "bank.com", "www.bank.com", "https://bank.com/login", "https://www.bank.com/login?a=b",
            "Log in at Bank.com.", "e.g. this", "version 3.14", "What? Here...", "9:30", "note: this", "a/b",
        )),
    ],
)  # fmt: skip
def test_a_link_whose_label_is_its_own_address_or_none_is_a_link(label: str, address: str) -> None:
    assert rich(f"[{label}]({address})") == [["a", address, label]]


def test_hostile_texts_are_inert() -> None:
    for payload in PAYLOADS:
        assert_safe(payload)
        assert_safe(f"**{payload}** [{payload}](https://x.example/) > {payload}")


@given(st.lists(_words, max_size=40).map("".join))
def test_the_words_of_a_message_stay(text: str) -> None:
    """Only marks go, and the addresses of links with a text."""
    letters = [c for c in re.sub(r"\]\(https?://[^\s]*|```\S*", "", text) if c.isalnum() and not c.isdigit()]
    rest: Any = iter(plain(rich(text)))

    assert all(letter in rest for letter in letters)


@pytest.mark.parametrize(
    "mark",
    [
        "**a ",
        "_a ",
        "[a",
        "```x\n",
        "> ",
        "- ",
        "*",
        "_",
        "`",
        "~~",
        "https://",
        "*_",
        "\\",
        "a-",
        "https://x.example/&a;)",
        "[a](https://(",
        "#-",
        "'a",
    ],
)
def test_no_text_takes_long(mark: str) -> None:
    text, search = mark * (40_000 // len(mark)), Search(" ".join(["a-b-c-d-e-f-g-h"] * 8))
    begun = time.process_time()

    rich(text), fold(text), mentioned(text, {}), search.finds(text), search.excerpt(text)

    assert time.process_time() - begun < 2  # it takes less than half a second
