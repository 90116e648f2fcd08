"""
The formatting of messages: a small part of Markdown, as a tree.

People write **bold**, *italic* or _italic_, ~~struck~~, `code`, [text](https://…), and, each on lines of its own,
> quotations, - lists, 1. numbered lists, and code between lines of ```. A backslash takes a mark its meaning.
Everything else is text, HTML and pictures among it. Addresses in the text are links by the rules of GitHub's extended
autolinks, in all scripts: an address ends before punctuation that ends a sentence, and before a bracket or a
quotation mark that was opened before it.

The page and the HTTP API get the tree, never HTML: the server makes escaped HTML of it, and scripts make nodes. A
node is text, or a list of its tag, of a link also its address, and its children. Only the tags in TAGS occur, and
addresses begin with http:// or https://. The time that this takes grows with the length of the text, and not faster.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias
from unicodedata import category, normalize

#: Text, or ["strong", *children], or ["a", address, *children].
Node: TypeAlias = str | list[Any]

TAGS = ("a", "blockquote", "code", "del", "em", "li", "ol", "pre", "strong", "ul")

_DEEPEST = 4  # marks within marks
_FENCE = "```"
#: What ends a sentence, besides the punctuation of other scripts; marks of the formatting; the name of a character.
_TRAILING = "?!.,:;*_~'"
_ENTITY = re.compile(r"&[a-z0-9]+;$", re.IGNORECASE)
#: No characters of addresses: white space, quotation marks, what cannot be seen, and punctuation of scripts without
#: blanks, of which only brackets in pairs belong to an address.
_UNLINKED = (
    r"\s<>\"`\xab\xbb\u200b\u200e\u200f\u201c-\u201f\u202a-\u202e\u2039\u203a\u2060-\u2069\ufeff"
    r"\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff61-\uff64"
)
_LINKED = rf"(?:[^{_UNLINKED}]|\uff08[^{_UNLINKED}]*\uff09)+"
_ITEM = re.compile(r"[-*] +(\S.*)")
_NUMBERED = re.compile(r"(\d{1,4})[.)] +(\S.*)")
_LONGEST = 500  # characters between two marks
#: Characters that look like a dot or a slash, as NFKC does not know; that turn the direction of what follows.
_ALIKE = {
    **dict.fromkeys(map(ord, "\u3002\ua4f8\u0701\u0702"), "."),
    **dict.fromkeys(map(ord, "\u2044\u2215\u29f8"), "/"),
}
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
#: A dot before two letters, as in a host; numbers of IPv4; "//"; a port.
_READS_AS_ADDRESS = re.compile(
    r"\w\.[^\W\d_]{2}|\w\.xn--|(?:\d+\.){3}\d|//|^\[?\w*:\w*:|^localhost\b|[^\W\d]:\d", re.I
)
# Marks stand at words, as quotation marks do, so that 2*3*4, snake_case_names and @_names_ are text.
_INLINE = re.compile(
    rf"""
      \\(?P<escaped>[\\`*_~\[\]>\#@-])
    | `(?P<code>[^`\n]{{1,500}})`
    | \[(?P<label>[^\[\]\n]{{1,200}})\]\((?P<to>https?://(?:[^{_UNLINKED}()]|\([^{_UNLINKED}()]*\)){{1,2000}})\)
    | (?<![a-z])(?P<address>https?://{_LINKED}|(?<![\w@./:-])www\.{_LINKED})
    | (?<![\w*])(?P<strong>\*\*)(?=[^\s*])
    | (?<![\w~])(?P<del>~~)(?=[^\s~])
    | (?<![\w*])(?P<em>\*)(?=[^\s*])
    | (?<![\w@])(?P<emphasis>_)(?=[^\s_])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDS = {
    "strong": re.compile(r"(?<=[^\s*])\*\*(?![\w*])"),
    "del": re.compile(r"(?<=[^\s~])~~(?![\w~])"),
    "em": re.compile(r"(?<=[^\s*])\*(?![\w*])"),
    "emphasis": re.compile(r"(?<=[^\s_])_(?!\w)"),
}


def rich(text: str) -> list[Node]:
    """Return the tree of a message with this text."""
    return _merged(_blocks(text.split("\n")))


def plain(nodes: Sequence[Node]) -> str:
    """Return the text of a tree."""
    return "".join(
        each if isinstance(each, str) else plain(each[2 if each[0] == "a" else 1 :]) for each in nodes
    )


def _blocks(lines: list[str]) -> Iterator[Node]:
    last_fence = max((at for at, line in enumerate(lines) if line.strip() == _FENCE), default=-1)
    begun, at = 0, 0  # the first line that is not part of a block yet
    while at < len(lines):
        block, end = _block(lines, at, last_fence)
        if block is None:
            at += 1
            continue
        yield from _inline("\n".join(lines[begun:at]))
        yield block
        begun = at = end
    yield from _inline("\n".join(lines[begun:]))


def _block(lines: list[str], at: int, last_fence: int) -> tuple[Node | None, int]:
    """Return the block that begins at a line, if any, and the line after it."""
    line, end = lines[at], at
    if line.startswith(_FENCE) and _FENCE not in line[3:] and at < last_fence:
        end = next(each for each in range(at + 1, len(lines)) if lines[each].strip() == _FENCE)
        return ["pre", "\n".join(lines[at + 1 : end])], end + 1
    if line.startswith(">"):
        while end < len(lines) and lines[end].startswith(">"):
            end += 1
        quoted = "\n".join(each[1:].removeprefix(" ") for each in lines[at:end])
        return ["blockquote", *_inline(quoted)], end
    items: list[Node] = []
    while end < len(lines) and (found := _ITEM.fullmatch(lines[end])):
        items.append(["li", *_inline(found[1])])
        end += 1
    if items:
        return ["ul", *items], end
    while end < len(lines) and (found := _NUMBERED.fullmatch(lines[end])) and int(found[1]) == len(items) + 1:
        items.append(["li", *_inline(found[2])])
        end += 1
    return (["ol", *items], end) if items else (None, at + 1)


def _inline(text: str, depth: int = 0) -> list[Node]:
    return _merged(_marked(text, depth))


def _marked(text: str, depth: int) -> Iterator[Node]:
    ends: dict[str, list[int]] = {}
    at = 0
    while found := _INLINE.search(text, at):
        yield text[at : found.start()]
        at, kind = found.end(), str(found.lastgroup)
        inner = found[kind]
        match kind:
            case "escaped":
                yield inner
            case "code":
                yield ["code", inner]
            case "to":
                yield _link(found)
            case "address":
                shown = _ended(inner)
                at = found.start() + len(shown)
                yield _autolink(shown)
            case _:
                if kind not in ends:
                    ends[kind] = [each.start() for each in _ENDS[kind].finditer(text)]
                place = bisect_right(ends[kind], at)
                end = ends[kind][place] if place < len(ends[kind]) else len(text) + _LONGEST
                if end - at > _LONGEST or "\n" in text[at:end] or depth == _DEEPEST:
                    yield inner
                else:
                    yield ["em" if kind == "emphasis" else kind, *_inline(text[at:end], depth + 1)]
                    at = end + len(inner)
    yield text[at:]


def _ended(address: str) -> str:
    """Return an address without what follows it in a sentence."""
    unopened = {last: _unopened(address, last) for last in {*address} if category(last) == "Pe"}
    end = len(address)
    while end:
        last = address[end - 1]
        if last == ";" and (entity := _ENTITY.search(address, max(0, end - 32), end)):
            end = entity.start()
        elif last in _TRAILING or (not last.isascii() and category(last) in ("Po", "Pd", "Pi", "Pf", "Cf")):
            end -= 1
        elif unopened.get(last, 0) > 0:
            end, unopened[last] = end - 1, unopened[last] - 1
        else:
            break
    return address[:end]


def _unopened(address: str, closing: str) -> int:
    """Return how many brackets *closing* an address has beyond those that open in it."""
    opening = next((each for code in (1, 2) if category(each := chr(ord(closing) - code)) == "Ps"), "\0")
    return address.count(closing) - address.count(opening)


def _autolink(text: str) -> Node:
    """Return a link; or text, if it has no host."""
    address = text if "://" in text else f"http://{text}"
    host = re.split("[/?#]", address, maxsplit=3)[2]
    names = host.split(".")
    if not re.search(r"\w", host) or "_" in "".join(names[-2:]) or (text != address and len(names) < 3):
        return text
    return ["a", address, text]


def _link(found: re.Match[str]) -> Node:
    """Return a link; or text, if its label reads as a host or an address that is not the link's own."""
    label, address = found["label"], found["to"]
    is_own = all(_begins(each, address) for each in _addresses(label))
    return ["a", address, label] if is_own else found[0]


def _addresses(label: str) -> list[str]:
    """Return what reads as a host or as an address in a label, as whoever reads it takes the characters."""
    if _TURNS.search(label):
        return [label]
    seen = "".join(each for each in normalize("NFKC", label) if category(each) != "Cf")
    return [each for each in seen.translate(_ALIKE).split() if _READS_AS_ADDRESS.search(each)]


def _begins(text: str, address: str) -> bool:
    """Whether a text is that address or its beginning, host and port included."""
    claimed, own = _bare(text.strip("(){}<>\"'*_~`,;!?.")), _bare(address)
    if not claimed or not own.startswith(claimed):
        return False
    return own == claimed or claimed.endswith("/") or own[len(claimed)] in "/?#"


def _bare(address: str) -> str:
    return re.sub(r"^(?:https?://)?(?:www\.)?", "", address.casefold())


def _merged(nodes: Iterator[Node]) -> list[Node]:
    """Return the nodes with adjacent texts as one, and without empty texts."""
    merged: list[Node] = []
    for node in nodes:
        if isinstance(node, str) and merged and isinstance(merged[-1], str):
            merged[-1] += node
        elif node:
            merged.append(node)
    return merged
