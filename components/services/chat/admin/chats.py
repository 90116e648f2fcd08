"""
The Chats page: all chats, and of one its members, how far each has read, and its messages.

Users who may view chats see who talks with whom, and how much. The messages are shown only to users who may read
messages, which is a permission of its own. What can be done is in moderation.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import wraps
from operator import itemgetter
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern

from components.control_room.names import searched
from components.control_room.pages import ControlRoomAdmin, Paging, Permission, View
from components.control_room.persons import persons
from components.exceptions import ChatNotFound, NotAMember
from components.services.chat import Chat, ChatReader, ChatSettings
from components.services.chat.admin.moderation import FOR_GOOD, VERBS, MuteForm, TrimForm, Verb
from components.services.chat.admin.targets import Row, Seat, Target, find_row, role_of
from components.services.chat.admin.transcripts import transcript
from components.templatetags.control_room import duration, grouped

MESSAGES = 50  # that a page shows
BLOCKED = 50  # the latest of them
SECONDS = frozenset({"max_age", "drop_read_after", "rate_period", "slow_mode"})  # of the settings


class ChatAdmin(ControlRoomAdmin):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("chat/", "chat", self.chat),
            self.page("messages/", "messages", self.messages),
            self.page("mute/", "mute", self.mute, needs="change"),
            self.page("trim/", "trim", self.trim, needs="delete"),
            *(
                self.page(f"{verb.name.replace('_', '-')}/", verb.name, self._doing(verb), needs=verb.needs)
                for verb in VERBS
            ),
            *super().get_urls(),
        ]

    def page(self, route: str, name: str, view: View, *, needs: Permission = "view") -> URLPattern:
        """Answer 404 with a page that says so if the chat goes while the page is made."""

        @wraps(view)
        def found(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            try:
                return view(request, **kwargs)
            except ChatNotFound as error:
                raise Http404(str(error)) from None

        return super().page(route, name, found, needs=needs)

    def find_url(self, name: str) -> str:
        return self.url("chat", chat=name)

    def may_read(self, request: HttpRequest) -> bool:
        """Return whether the user may see the messages."""
        return request.user.has_perm(f"{self.opts.app_label}.view_messages_{self.opts.model_name}")

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader, texts = ChatReader(), searched(request)
        template = "admin/components/chats/list.html"
        for text in texts:
            if reader.find(text):
                return HttpResponseRedirect(self.find_url(text))
        if texts:
            return self.render(request, template, "Chats", {"text": texts[0]}, live=False)
        paging = Paging.of(request, total=reader.count())
        infos = reader.page(offset=paging.offset, limit=paging.size)
        context = {"rows": [Row(info) for info in infos], "paging": paging}
        return self.render(request, template, "Chats", context)

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
            "may_read": self.may_read(request),
            "paging": paging,
            "members": [Seat(known[member.user], member) for member in shown],
            "blocked": [(known[user], since) for user, since in blocked[:BLOCKED]],
            "blocked_in_all": len(blocked),
            "settings": list(_settings(info.settings)),
        }
        return self.render(request, "admin/components/chats/chat.html", f"Chat {row.title}", context)

    def messages(self, request: HttpRequest) -> HttpResponse:
        if not self.may_read(request):
            raise PermissionDenied
        row, before = find_row(request), _number(request.GET.get("before", ""))
        self.note_reading(request, self.subject(row.info.id))
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
            f"Messages of {row.title}",
            context,
            trail=self._trail(row),
            live=before is None,
        )

    def mute(self, request: HttpRequest) -> HttpResponse:
        target = Target.of(request)
        member, row = target.member, target.row
        if member is None:
            raise Http404(f"{target.user!r} is not in the chat {row.name}.")

        def run(form: forms.Form) -> str:
            chosen = form.cleaned_data["seconds"]
            seconds = None if chosen == FOR_GOOD else float(chosen)
            try:
                target.chat.mute(target.user, seconds=seconds)
            except NotAMember:  # they left just now
                return ""
            how_long = f"for {duration(seconds)}" if seconds else "until unmuted"
            return f"{target.written('Muted {who} in the chat {chat}')} {how_long}. {role_of(member)}"

        effects = [
            role_of(member),
            "A muted member can read, and cannot send messages.",
        ]
        return self._asked(request, target, target.written("Mute {who}"), "Mute", MuteForm, effects, run)

    def trim(self, request: HttpRequest) -> HttpResponse:
        target = Target.of(request)
        row = target.row

        def run(form: forms.Form) -> str:
            before = form.cleaned_data["before"]
            gone = target.chat.trim(before=before)
            if not gone:
                return ""
            return (
                f"Trimmed the chat {row.name}: {grouped(gone)} from before number {grouped(before)} are gone."
            )

        effects = [
            f"It has {row.size}; the numbers {grouped(row.info.first_seq)} to {grouped(row.info.last_seq)}.",
            "All before the number that you give will be gone, read or not. Members who have not read it are told "
            "how much they have missed.",
            "This cannot be undone.",
        ]
        return self._asked(request, target, f"Trim the chat {row.title}", "Trim", TrimForm, effects, run)

    def _asked(
        self,
        request: HttpRequest,
        target: Target,
        title: str,
        button: str,
        form_class: type[forms.Form],
        effects: Sequence[str],
        run: Callable[[forms.Form], str],
    ) -> HttpResponse:
        """Ask with a form; when it is valid act, log it and say so. *run* returns what it did, "" for nothing."""
        row = target.row
        back = self.find_url(row.info.id)
        form = form_class(request.POST if request.method == "POST" else None, label_suffix="")
        if not form.is_valid():
            context = {"form": form, "effects": effects, "button": button, "back": back}
            template = "admin/components/chats/ask.html"
            return self.render(request, template, title, context, trail=self._trail(row), live=False)
        if said := run(form):
            self.log_change(request, self.subject(row.info.id), said)
            self.message_user(request, said, messages.SUCCESS)
        else:
            self.message_user(request, "There was nothing to do.", messages.INFO)
        return HttpResponseRedirect(back)

    def _doing(self, verb: Verb) -> View:
        """Return the view that asks whether to do it, and does it."""

        def view(request: HttpRequest) -> HttpResponse:
            target = Target.of(request)
            chat_id = target.row.info.id
            back, after = self.find_url(chat_id), ""
            if verb.name == "delete":
                after = self.url("changelist")
            elif target.seq and self.may_read(request):
                back = self.url("messages", chat=chat_id)
            action = verb.action(target, self.subject(chat_id), back, after)
            return self.confirm(request, action, trail=self._trail(target.row))

        return view

    def _trail(self, row: Row) -> Sequence[tuple[str, str]]:
        return [(f"Chat {row.title}", self.find_url(row.info.id))]


def _number(text: str) -> int | None:
    """Return the number of a message from a URL; None if it is not a number."""
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _settings(settings: ChatSettings) -> Iterator[tuple[str, str]]:
    """Yield the name of each setting with its value, as people write it."""
    for field in fields(settings):
        name, value = field.name, getattr(settings, field.name)
        if value is None:
            written = "all" if name == "history" else "no limit" if name == "max_age" else "never"
        elif isinstance(value, bool):
            written = "yes" if value else "no"
        elif name in SECONDS:
            written = duration(value)
        else:
            written = grouped(value)
        yield name, written
