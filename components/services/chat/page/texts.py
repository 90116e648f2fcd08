"""
Texts of the chat page: titles, previews, events and mentions. static/components/chat/sentences.js has the same texts
for the page with scripts.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.services.chat import ChatMessage, ChatNews, Event, EventKind, Role
from components.services.chat.rich import TAGS, Node, plain, rich

#: A function from a person's id to the name to show.
NameOf = Callable[[str], str]

PICTURE = _("Picture")
#: The reactions that the page offers, as they are stored. People can add others by the API.
REACTIONS = ("👍", "❤️", "😂", "🎉", "😮", "😢", "🙏", "👀")
_TONES = 8  # colours of avatars, in chat.css
_LINK = '<a href="{}" rel="noopener noreferrer nofollow ugc" target="_blank">{}</a>'
_NO_LETTER = re.compile(r"(?!_*[^\W_])")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
#: An address without http://; or one of a person at a server. Messages do not show them as links.
_ADDRESS = re.compile(r"(?<![\w@.-])[\w-]+(?:\.[\w-]+)+/\S*|@[\w.-]+@[\w-]+\.\w+")
#: The sentences for events: with the person who did it, and without. ROLE has them for each role.
TOLD: Mapping[EventKind, tuple[Promise, Promise]] = {
    EventKind.CREATED: (_("%(by)s started the chat"), _("The chat was started")),
    EventKind.JOINED: (_("%(by)s added %(user)s"), _("%(user)s joined")),
    EventKind.LEFT: (_("%(user)s left"), _("%(user)s left")),
    EventKind.KICKED: (_("%(by)s removed %(user)s"), _("%(user)s was removed")),
    EventKind.BLOCKED: (_("%(by)s blocked %(user)s"), _("%(user)s was blocked")),
    EventKind.UNBLOCKED: (_("%(by)s unblocked %(user)s"), _("%(user)s was unblocked")),
    EventKind.MUTED: (_("%(by)s muted %(user)s"), _("%(user)s was muted")),
    EventKind.UNMUTED: (_("%(by)s unmuted %(user)s"), _("%(user)s was unmuted")),
    EventKind.DELETED: (_("%(by)s deleted a message"), _("A message was deleted")),
    EventKind.ERASED: (_("The messages of %(user)s were erased"), _("The messages of %(user)s were erased")),
    EventKind.RENAMED: (_("%(by)s named the chat “%(detail)s”"), _("The chat is now called “%(detail)s”")),
    EventKind.CONFIGURED: (_("%(by)s changed the settings"), _("The settings were changed")),
    EventKind.CLOSED: (_("%(by)s closed the chat"), _("The chat was closed")),
    EventKind.REOPENED: (_("%(by)s reopened the chat"), _("The chat was reopened")),
}
MADE: Mapping[str, tuple[Promise, Promise]] = {
    Role.OWNER: (_("%(by)s made %(user)s an owner"), _("%(user)s is now an owner")),
    Role.MODERATOR: (_("%(by)s made %(user)s a moderator"), _("%(user)s is now a moderator")),
    Role.MEMBER: (_("%(by)s made %(user)s a member"), _("%(user)s is now a member")),
}


def sentence(event: Event, name_of: NameOf) -> str:
    """Return a sentence for an event."""
    by, user = (name_of(id) if id else "" for id in (event.by, event.user))
    told = MADE.get(event.detail) if event.kind == EventKind.ROLE else TOLD[event.kind]
    if told is None:  # a role of a newer release
        return gettext("The chat was changed")
    is_by_another = by and not (event.kind == EventKind.JOINED and event.by == event.user)
    return str(told[0 if is_by_another else 1]) % {"by": by, "user": user or by, "detail": event.detail}


def title_of(chat: ChatNews, me: str, name_of: NameOf) -> str:
    """Return a chat's title, or else the names of its other members."""
    if chat.title:
        return chat.title
    others = sorted(name_of(id) for id in chat.reads if id != me)
    if len(others) > 3:
        more, names = len(others) - 3, ", ".join(others[:3])
        text = ngettext("%(names)s and %(count)s more", "%(names)s and %(count)s more", more)
        return text % {"names": names, "count": more}
    if others:
        return ", ".join(others)
    if chat.members > 1:
        return ngettext("Chat of %(count)s", "Chat of %(count)s", chat.members) % {"count": chat.members}
    return gettext("Only you")


def preview(message: ChatMessage | None, me: str, name_of: NameOf) -> str:
    """Return the last message in one line."""
    if message is None:
        return ""
    if message.event:
        return sentence(message.event, name_of)
    text = " ".join(plain(rich(message.text)).split())[:200] or str(PICTURE)
    if message.sender == me:
        return gettext("You: %(text)s") % {"text": text}
    return f"{name_of(message.sender)}: {text}"


def here_now(names: Sequence[str], count: int) -> str:
    """Return who has the chat open: some names, and how many people they are."""
    shown = names[:3]
    if not shown:
        return ""
    if (more := count - len(shown)) <= 0:
        return gettext("Here now: %(names)s") % {"names": ", ".join(shown)}
    text = ngettext("Here now: %(names)s and %(count)s more", "Here now: %(names)s and %(count)s more", more)
    return text % {"names": ", ".join(shown), "count": more}


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


def mentioned(text: str, names: Mapping[str, str]) -> list[str]:
    """
    Return the ids in *names* whose name follows an "@", except in code, after a backslash, or in an address.

    If one name is a prefix of another, the longer one counts. mentions.js has the same rules.
    """
    said = _said(rich(_ESCAPED.sub(lambda found: " " if found[1] == "@" else found[0], text)))
    said = _ADDRESS.sub(" ", said)
    ids = {name: id for id, name in names.items()}
    lengths, end = sorted({*map(len, ids)}, reverse=True), 0
    found: dict[str, None] = {}
    for at in re.finditer(r"(?<!_)_*@", said):
        start, is_in_word = at.end(), said[at.start() - 1 : at.start()].isalnum()
        for length in lengths if start >= end and not is_in_word else ():
            if (id := ids.get(said[start : start + length])) and _NO_LETTER.match(said, start + length):
                found[id], end = None, start + length
                break
    return [*found]


def _said(nodes: Iterable[Node]) -> str:
    """Return the text of a tree without its code and addresses."""
    return "".join(map(_part, nodes))


def _part(node: Node) -> str:
    if isinstance(node, str):
        return node
    tag, *children = node
    if tag == "a":
        address, label = children
        return " " if address.endswith(label) else f" {label} "
    if tag in ("code", "pre"):
        return " "
    return f" {_said(children)} "
