"""
The Mailboxes page: how full each is, since when its oldest message waits, and when its recipient last pulled.

It looks through MailboxReader. A page of the list costs four round trips, however many mailboxes there are. What was
written is shown to those alone who may read messages, a permission of its own. To clear a mailbox is to delete; to
take the mail of a blocked sender again is to change.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern

from components.control_room.base import Action, Done, Paging, Trail
from components.control_room.names import NamedPages, searched
from components.control_room.persons import Person, persons
from components.people import people
from components.services.mailboxes import Mailbox, MailboxInfo, MailboxReader
from components.templatetags.control_room import grouped, legible

MESSAGES = 50  # that a page shows
BLOCKED = 50  # the latest of them


@dataclass(frozen=True)
class Row:
    """A mailbox as the pages show it."""

    info: MailboxInfo
    #: Whose it is.
    person: Person

    @property
    def name(self) -> str:
        return legible(self.info.name)

    @property
    def is_full(self) -> bool:
        return self.info.limit is not None and self.info.depth >= self.info.limit


class MailboxAdmin(NamedPages):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("mailbox/", "mailbox", self.mailbox),
            self.page("messages/", "messages", self.messages),
            self.page("unblock/", "unblock", self.unblock, needs="change"),
            self.page("clear/", "clear", self.clear, needs="delete"),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("mailbox", mailbox=name)

    def may_read(self, request: HttpRequest) -> bool:
        """Whether the user may see what was written."""
        return request.user.has_perm(f"{self.opts.app_label}.view_messages_{self.opts.model_name}")

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader, texts = MailboxReader(), searched(request)
        template = "admin/components/mailboxes/list.html"
        for text in [*texts, *people().find(texts).values()]:
            if reader.find(text):
                return HttpResponseRedirect(self.find_url(text))
        if texts:
            return self.render(request, template, "Mailboxes", {"text": texts[0]}, live=False)
        paging = Paging.of(request, total=reader.count())
        infos = reader.page(offset=paging.offset, limit=paging.size)
        known = persons(info.name for info in infos)
        context = {"rows": [Row(info, known[info.name]) for info in infos], "paging": paging}
        return self.render(request, template, "Mailboxes", context)

    def mailbox(self, request: HttpRequest) -> HttpResponse:
        row = _find(request)
        found = sorted(Mailbox(row.info.name).blocked().items(), key=itemgetter(1), reverse=True)
        known = persons(sender for sender, _ in found[:BLOCKED])
        context = {
            "row": row,
            "info": row.info,
            "subject": self.subject(row.info.name),
            "may_read": self.may_read(request),
            "blocked": [(known[sender], since) for sender, since in found[:BLOCKED]],
            "blocked_in_all": len(found),
        }
        template = "admin/components/mailboxes/mailbox.html"
        return self.render(request, template, f"Mailbox of {row.person}", context)

    def messages(self, request: HttpRequest) -> HttpResponse:
        if not self.may_read(request):
            raise PermissionDenied
        row, first = _find(request), _number(request.GET.get("first", ""))
        self.note_reading(request, self.subject(row.info.name))
        mails = MailboxReader().messages(row.info.name, first=first, limit=MESSAGES + 1)
        known = persons(mail.sender for mail in mails)
        context = {
            "info": row.info,
            "lines": [(mail, known[mail.sender]) for mail in mails[:MESSAGES]],
            "newer": mails[MESSAGES].id if len(mails) > MESSAGES else None,
            "is_oldest": first == 0,
        }
        template, title = "admin/components/mailboxes/messages.html", f"Messages to {row.person}"
        return self.render(request, template, title, context, trail=self._trail(row), live=first == 0)

    def unblock(self, request: HttpRequest) -> HttpResponse:
        row, sender = _find(request), request.GET.get("sender", "")
        mailbox, page = Mailbox(row.info.name), self.find_url(row.info.name)
        since = mailbox.blocked().get(sender)
        who = persons([sender]).get(sender, Person(sender))

        def run() -> Done:
            if since is None:
                return Done()
            mailbox.unblock(sender)
            return Done(f"The mailbox of {row.person} takes the mail of {who} again.")

        action = Action(
            title=f"Take the mail of {who} again",
            button="Take it",
            effects=[
                f"The mailbox of {row.person} refuses what {who} writes.",
                "It is taken again, from now on. What was refused is not there; nobody has kept it.",
            ],
            run=run,
            subject=self.subject(row.info.name),
            idle=f"The mailbox of {row.person} refuses no mail of {who}.",
            is_idle=since is None,
            back=page,
        )
        return self.confirm(request, action, trail=self._trail(row))

    def clear(self, request: HttpRequest) -> HttpResponse:
        row = _find(request)
        info, page = row.info, self.find_url(row.info.name)

        def run() -> Done:
            count = Mailbox(info.name).clear()
            return (
                Done(f"Cleared the mailbox of {row.person}: {_messages(count)} dropped.") if count else Done()
            )

        action = Action(
            title=f"Clear the mailbox of {row.person}",
            button="Clear",
            effects=[
                f"It has {_messages(info.depth)} now, {filesizeformat(info.bytes)}; {grouped(info.handed_out)} of "
                "them were handed out and may have been read.",
                "All that are there when you press the button are dropped, those that come until then too.",
                "Their senders can see that they were dropped; the recipient is told how many it has missed.",
                "This cannot be undone.",
            ],
            run=run,
            subject=self.subject(info.name),
            idle=f"The mailbox of {row.person} is empty.",
            is_idle=not info.depth,
            back=page,
        )
        return self.confirm(request, action, trail=self._trail(row))

    def _trail(self, row: Row) -> Trail:
        return [(f"Mailbox of {row.person}", self.find_url(row.info.name))]


def _find(request: HttpRequest) -> Row:
    """The mailbox that the query names."""
    name = request.GET.get("mailbox", "")
    info = MailboxReader().find(name)
    if info is None:
        raise Http404(f"There is no mailbox {name!r}, or it was not used for a year.")
    return Row(info, persons([name])[name])


def _number(text: str) -> int:
    """An id of a message from a URL; 0 for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 17 else 0


def _messages(count: int) -> str:
    return f"{grouped(count)} message{'s' if count != 1 else ''}"
