"""
The Chats pages: a list of all chats; and for each chat its members, how far each has read, and its messages.

Users who may view chats see who talks with whom, and how much. Only users with the separate permission to read
messages see the messages. The actions are in moderation.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from operator import itemgetter
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin, Paging, View, number_in
from components.exceptions import ChatNotFound, InvalidValue
from components.formatting import duration, grouped, legible
from components.people.person import Person, persons
from components.services.chat import Chat, ChatMessage, ChatReader, ChatSettings, Event, EventKind, Found
from components.services.chat.admin.moderation import VERBS
from components.services.chat.admin.targets import Row, Seat, find_row
from components.services.chat.page import texts
from components.services.chat.search import MAX_WORDS, Search

MESSAGES = 50  # messages on a page
NEWER = 10  # of these, messages after the one that a link leads to
BLOCKED = 50  # most recently blocked people on a page
SECONDS = frozenset({"max_age", "drop_read_after", "rate_period", "slow_mode"})  # settings that are durations


class ChatAdmin(ControlRoomAdmin):
    purpose = _("A chat keeps what its members say, for those who are away, too.")

    verbs = VERBS

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("chat/", "chat", self.chat),
            self.page("messages/", "messages", self.messages, needs="view_messages"),
            *super().get_urls(),
        ]

    def page(
        self, route: str, name: str, view: View, *, needs: str = "view", posts: bool = False
    ) -> URLPattern:
        """Render the page. Answer 404 with a page that says so if the chat is deleted meanwhile."""

        @wraps(view)
        def found(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            try:
                return view(request, **kwargs)
            except ChatNotFound as error:
                raise Http404(str(error)) from None

        return super().page(route, name, found, needs=needs, posts=posts)

    def find_url(self, name: str) -> str:
        return self.url("chat", chat=name)

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader = ChatReader()

        def rows(paging: Paging) -> list[Row]:
            return [Row(info) for info in reader.page(offset=paging.offset, limit=paging.size)]

        return self.list_page(
            request,
            "admin/components/chats/list.html",
            find=lambda text: text if reader.find(text) else None,
            total=reader.count,
            rows=rows,
        )

    def chat(self, request: HttpRequest) -> HttpResponse:
        row = find_row(request)
        info = row.info
        chat = Chat(info.id)
        members = chat.members()
        paging = Paging.of(request, total=len(members))
        shown = members[paging.offset : paging.offset + paging.size]
        blocked = sorted(chat.blocked().items(), key=itemgetter(1), reverse=True)
        known = persons(
            [info.created_by, *(member.user for member in shown), *(user for user, _ in blocked[:BLOCKED])]
        )
        context = {
            "row": row,
            "maker": known[info.created_by],
            "info": info,
            "subject": self.subject(info.id),
            "may_read": self.may(request, "view_messages"),
            "paging": paging,
            "members": [Seat(known[member.user], member) for member in shown],
            "blocked": [(known[user], since) for user, since in blocked[:BLOCKED]],
            "blocked_in_all": len(blocked),
            "settings": list(_settings(info.settings)),
        }
        return self.render(request, "admin/components/chats/chat.html", row.trail, context)

    def messages(self, request: HttpRequest) -> HttpResponse:
        row, before = find_row(request), number_in(request.GET.get("before", ""))
        self.note_reading(request, self.subject(row.info.id))
        if words := request.GET.get("q", "").strip():
            return self._found(request, row, words, before)
        page = ChatReader().messages(row.info.id, before=before, limit=MESSAGES)
        context = {
            "row": row,
            "info": row.info,
            "lines": transcript(page.messages),
            "older": page.messages[0].seq if page.has_more and page.messages else None,
            "is_newest": before is None,
        }
        return self.render(
            request,
            "admin/components/chats/messages.html",
            gettext("Messages of %(title)s") % {"title": row.title},
            context,
            trail=[(row.trail, self.find_url(row.info.id))],
            live=before is None,
        )

    def _found(self, request: HttpRequest, row: Row, words: str, before: int | None) -> HttpResponse:
        """Answer with the messages that have these words, as far as one request searches."""
        found, problem, shown = Found((), None), "", []
        try:
            search = Search(words)
            found = ChatReader().search(row.info.id, words, before=before, limit=MESSAGES)
            lines = zip(transcript(found.messages), found.messages, strict=True)
            shown = [(line, search.excerpt(each.text), each.seq + NEWER) for line, each in lines]
        except InvalidValue:
            text = ngettext("Search for %(count)s word.", "Search for up to %(count)s words.", MAX_WORDS)
            problem = text % {"count": MAX_WORDS}
        context = {
            "row": row,
            "info": row.info,
            "words": words,
            "problem": problem,
            "found": shown,
            "next": found.next,
        }
        return self.render(
            request,
            "admin/components/chats/found.html",
            gettext("Search in %(title)s") % {"title": row.title},
            context,
            trail=[
                (row.trail, self.find_url(row.info.id)),
                (
                    gettext("Messages of %(title)s") % {"title": row.title},
                    self.url("messages", chat=row.info.id),
                ),
            ],
            live=False,
            status=400 if problem else 200,
        )


#: What each setting is called on the page.
LABELS = {
    "history": _("Earlier messages that a new member sees"),
    "max_messages": _("Messages kept at most"),
    "max_bytes": _("Bytes kept at most"),
    "max_age": _("Messages are deleted after"),
    "drop_read_after": _("Messages that all have read are deleted after"),
    "max_text": _("Characters in a message at most"),
    "max_data": _("Bytes of data in a message at most"),
    "max_members": _("Members at most"),
    "rate_limit": _("Messages of a member in each period at most"),
    "rate_period": _("Length of such a period"),
    "slow_mode": _("Least time between two messages of a member"),
    "max_reactions": _("Reactions to a message at most"),
    "is_open": _("Anyone may join"),
}


def _settings(settings: ChatSettings) -> Iterator[tuple[str, str]]:
    """Yield what each setting is called, with its value, as people write them."""
    for field in fields(settings):
        name, value = field.name, getattr(settings, field.name)
        if value is None:
            written = gettext("all") if name == "history" else gettext("never")
        elif isinstance(value, bool):
            written = gettext("yes") if value else gettext("no")
        elif name in SECONDS:
            written = duration(value)
        else:
            written = grouped(value)
        yield str(LABELS[name]), written


#: The sentence for each kind of event, with placeholders for the actor, the person concerned, and the detail.
TOLD: Mapping[EventKind, Promise] = {
    **{kind: told for kind, (told, _by_nobody) in texts.TOLD.items()},
    EventKind.ROLE: _("%(by)s changed the role of %(user)s: %(detail)s"),
    EventKind.DELETED: _("%(by)s deleted message %(detail)s"),
    EventKind.RENAMED: _("%(by)s renamed the chat: %(detail)s"),
    EventKind.REOPENED: _("%(by)s opened the chat again"),
}
ON_THEIR_OWN = _("%(user)s joined")


@dataclass(frozen=True)
class Line:
    """A message, unchanged, or an event as the page shows it."""

    message: ChatMessage
    #: The sender; None for an event.
    person: Person | None
    mentions: str
    #: The sentence of an event.
    told: str


def transcript(messages: Sequence[ChatMessage]) -> list[Line]:
    """Return the lines for *messages*. One query fetches all names."""
    known = persons(id for message in messages for id in message.people)
    return [
        Line(
            message,
            known.get(message.sender),
            ", ".join(str(known[user]) for user in message.mentions),
            _told(message.event, known) if message.event else "",
        )
        for message in messages
    ]


def _told(event: Event, known: Mapping[str, Person]) -> str:
    sentence = TOLD[event.kind]
    if event.kind is EventKind.ROLE:
        sentence = texts.MADE.get(event.detail, (sentence,))[0]  # newer releases may have others
    if event.kind is EventKind.JOINED and event.by == event.user:
        sentence = ON_THEIR_OWN
    by = known.get(event.by, gettext("The system"))
    return str(sentence) % {"by": by, "user": known.get(event.user, by), "detail": legible(event.detail)}
