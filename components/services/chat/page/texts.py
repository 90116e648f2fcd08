"""
Texts of the chat page: titles, previews, events and mentions. static/components/chat/sentences.js has the same texts
for the page with scripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from components.services.chat import ChatMessage, ChatNews, Event, EventKind
from components.services.chat.rich import TAGS, Node

#: A function from a person's id to the name to show.
NameOf = Callable[[str], str]

PICTURE = "Picture"
#: The reactions that the page offers. People can add others by the API.
REACTIONS = ("👍", "❤️", "😂", "🎉", "😮", "😢", "🙏", "👀")
_TONES = 8  # colours of avatars, in chat.css
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]+", re.IGNORECASE)
_LINK = '<a href="{}" rel="noopener noreferrer nofollow ugc" target="_blank">{}</a>'
_TRAILING = ".,:;!?)]}"  # belongs to the sentence, not to the address
_ROLES = {"owner": "an owner", "moderator": "a moderator", "member": "a member"}
_DEEDS = {
    EventKind.KICKED: ("removed", "was removed"),
    EventKind.BLOCKED: ("blocked", "was blocked"),
    EventKind.UNBLOCKED: ("unblocked", "was unblocked"),
    EventKind.MUTED: ("muted", "was muted"),
    EventKind.UNMUTED: ("unmuted", "was unmuted"),
}
_TURNS = {
    EventKind.CREATED: ("started the chat", "The chat was started"),
    EventKind.DELETED: ("deleted a message", "A message was deleted"),
    EventKind.CONFIGURED: ("changed the settings", "The settings were changed"),
    EventKind.CLOSED: ("closed the chat", "The chat was closed"),
    EventKind.REOPENED: ("reopened the chat", "The chat was reopened"),
}


def sentence(event: Event, name_of: NameOf) -> str:
    """Return a sentence for an event."""
    by, user = (name_of(id) if id else "" for id in (event.by, event.user))
    if event.kind in _DEEDS:
        active, passive = _DEEDS[event.kind]
        return f"{by} {active} {user}" if by else f"{user} {passive}"
    if event.kind in _TURNS:
        active, passive = _TURNS[event.kind]
        return f"{by} {active}" if by else passive
    if event.kind == EventKind.JOINED:
        return f"{by} added {user}" if by and by != user else f"{user} joined"
    if event.kind == EventKind.ROLE:
        role = _ROLES.get(event.detail, event.detail)
        return f"{by} made {user} {role}" if by else f"{user} is now {role}"
    if event.kind == EventKind.ERASED:
        return f"The messages of {user} were erased"
    if event.kind == EventKind.RENAMED:
        return f"{by} named the chat “{event.detail}”" if by else f"The chat is now called “{event.detail}”"
    return f"{user or by} left"


def title_of(chat: ChatNews, me: str, name_of: NameOf) -> str:
    """Return a chat's title, or else the names of its other members."""
    if chat.title:
        return chat.title
    others = sorted(name_of(id) for id in chat.reads if id != me)
    if len(others) > 3:
        return f"{', '.join(others[:3])} and {len(others) - 3} more"
    if others:
        return ", ".join(others)
    return f"Chat of {chat.members}" if chat.members > 1 else "Only you"


def preview(message: ChatMessage | None, me: str, name_of: NameOf) -> str:
    """Return the last message in one line."""
    if message is None:
        return ""
    if message.event:
        return sentence(message.event, name_of)
    text = " ".join(message.text.split())[:200] or PICTURE
    return f"{'You' if message.sender == me else name_of(message.sender)}: {text}"


def initials(name: str) -> str:
    """Return the initials for the round picture."""
    letters = [next((c for c in word if c.isalnum()), "") for word in re.split(r"[\s,]+", name)]
    return "".join([letter for letter in letters if letter][:2]).upper() or "#"


def tone(id: str) -> int:
    """Return the number of a person's colour."""
    total = 0
    for character in id:
        total = (total * 31 + ord(character)) % 65_521
    return total % _TONES


def formatted(nodes: Iterable[Node]) -> SafeString:
    """Return escaped HTML of the tree of a message (rich.py)."""
    return format_html_join("", "{}", ((_element(node),) for node in nodes))


def _element(node: Node) -> SafeString | str:
    if isinstance(node, str):
        return node
    tag, *children = node
    if tag == "a":
        return format_html(_LINK, children[0], formatted(children[1:]))
    assert tag in TAGS
    return format_html("<{0}>{1}</{0}>", mark_safe(tag), formatted(children))


def linked(text: str) -> SafeString:
    """Return *text*, escaped, with its http and https URLs as links."""
    parts: list[str] = []
    end = 0
    for found in _ADDRESS.finditer(text):
        address = found[0].rstrip(_TRAILING)
        if address.lower() in ("http://", "https://"):
            continue
        parts += [text[end : found.start()], format_html(_LINK, address, address)]
        end = found.start() + len(address)
    return format_html_join("", "{}", [(part,) for part in (*parts, text[end:])])


def mentioned(text: str, names: Mapping[str, str]) -> list[str]:
    """
    Return the ids in *names* whose name follows an "@".

    If one name is a prefix of another, the longer one counts.
    """
    found = []
    for id, name in sorted(names.items(), key=lambda item: -len(item[1])):
        pattern = rf"(?<!\w)@{re.escape(name)}(?!\w)"
        text, count = re.subn(pattern, " ", text)
        if count:
            found.append(id)
    return found
