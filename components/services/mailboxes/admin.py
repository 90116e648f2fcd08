"""
The Mailboxes page: the depth of each mailbox, how long its oldest message has waited, and when its recipient last
pulled.

A page of the list costs four round trips, however many mailboxes there are. Messages are shown only to users with the
separate permission to read them. Clearing a mailbox needs the permission to delete; unblocking a sender needs the
permission to change.
"""

from dataclasses import dataclass
from operator import itemgetter

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin, Paging, number_in
from components.control_room.verbs import Action, Done, Trail, Verb
from components.formatting import grouped, legible, memory
from components.people import people
from components.people.person import Person, persons
from components.services.mailboxes import Mailbox, MailboxInfo, MailboxReader

MESSAGES = 50  # messages on a page
BLOCKED = 50  # most recently blocked senders on a page


@dataclass(frozen=True)
class Row:
    """A mailbox as the pages show it."""

    info: MailboxInfo
    #: The person who owns it.
    person: Person

    @property
    def name(self) -> str:
        return legible(self.info.name)

    @property
    def is_full(self) -> bool:
        return self.info.limit is not None and self.info.depth >= self.info.limit


class MailboxAdmin(ControlRoomAdmin):
    purpose = _("A mailbox keeps messages for one recipient until they have confirmed them.")

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("mailbox/", "mailbox", self.mailbox),
            self.page("messages/", "messages", self.messages, needs="view_messages"),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("mailbox", mailbox=name)

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader = MailboxReader()

        def find(text: str) -> str | None:
            names = [text, *people().find([text]).values()]
            return next((name for name in names if reader.find(name)), None)

        def rows(paging: Paging) -> list[Row]:
            infos = reader.page(offset=paging.offset, limit=paging.size)
            known = persons(info.name for info in infos)
            return [Row(info, known[info.name]) for info in infos]

        template = "admin/components/mailboxes/list.html"
        return self.list_page(request, template, find=find, total=reader.count, rows=rows)

    def mailbox(self, request: HttpRequest) -> HttpResponse:
        row = _find(request)
        found = sorted(Mailbox(row.info.name).blocked().items(), key=itemgetter(1), reverse=True)
        known = persons(sender for sender, _ in found[:BLOCKED])
        context = {
            "row": row,
            "info": row.info,
            "subject": self.subject(row.info.name),
            "may_read": self.may(request, "view_messages"),
            "blocked": [(known[sender], since) for sender, since in found[:BLOCKED]],
            "blocked_in_all": len(found),
        }
        template = "admin/components/mailboxes/mailbox.html"
        return self.render(request, template, _title(row), context)

    def messages(self, request: HttpRequest) -> HttpResponse:
        row, first = _find(request), number_in(request.GET.get("first", "")) or 0
        self.note_reading(request, self.subject(row.info.name))
        mails = MailboxReader().messages(row.info.name, first=first, limit=MESSAGES + 1)
        known = persons(mail.sender for mail in mails)
        context = {
            "info": row.info,
            "lines": [(mail, known[mail.sender]) for mail in mails[:MESSAGES]],
            "newer": mails[MESSAGES].id if len(mails) > MESSAGES else None,
            "is_oldest": first == 0,
        }
        template = "admin/components/mailboxes/messages.html"
        title = gettext("Messages to %(person)s") % {"person": row.person}
        return self.render(request, template, title, context, trail=self._trail(row), live=first == 0)

    def unblock(self, request: HttpRequest) -> Action:
        row, sender = _find(request), request.GET.get("sender", "")
        mailbox = Mailbox(row.info.name)
        names = {"person": row.person, "sender": persons([sender])[sender]}

        def run() -> Done:
            mailbox.unblock(sender)
            return Done(gettext("The mailbox of %(person)s accepts mail from %(sender)s again.") % names)

        return Action(
            of=row.info.name,
            trail=self._trail(row),
            title=gettext("Accept mail from %(sender)s again") % names,
            effects=[
                gettext("The mailbox of %(person)s refuses mail from %(sender)s.") % names,
                gettext("From now on, it accepts their mail again. Mail that was refused before is lost."),
            ],
            run=run if sender in mailbox.blocked() else None,
            idle=gettext("The mailbox of %(person)s accepts mail from %(sender)s already.") % names,
        )

    def clear(self, request: HttpRequest) -> Action:
        row = _find(request)
        info = row.info

        def run() -> Done:
            count = Mailbox(info.name).clear()
            said = ngettext(
                "Emptied the mailbox of %(person)s: %(count)s message was deleted.",
                "Emptied the mailbox of %(person)s: %(count)s messages were deleted.",
                count,
            )
            return Done(said % {"person": row.person, "count": grouped(count)} if count else "")

        holding = ngettext(
            "It has %(count)s message, %(size)s; fetched, and perhaps read: %(handed_out)s.",
            "It has %(count)s messages, %(size)s; fetched, and perhaps read: %(handed_out)s.",
            info.depth,
        )
        sizes = {"size": memory(info.bytes), "handed_out": grouped(info.handed_out)}

        return Action(
            of=info.name,
            trail=self._trail(row),
            title=gettext("Empty the mailbox of %(person)s") % {"person": row.person},
            effects=[
                holding % {"count": grouped(info.depth), **sizes},
                gettext(
                    "All messages in it are deleted when you press the button, even those that have just arrived."
                ),
                gettext(
                    "Their senders can see that they were deleted. The recipient learns how many they have missed."
                ),
                gettext("This cannot be undone."),
            ],
            run=run if info.depth else None,
            idle=gettext("The mailbox of %(person)s is empty.") % {"person": row.person},
        )

    def _trail(self, row: Row) -> Trail:
        return [(_title(row), self.find_url(row.info.name))]

    verbs = (
        Verb("unblock", _("Accept mail again"), unblock),
        Verb("clear", _("Empty the mailbox"), clear, needs="delete", deletes=True),
    )


def _find(request: HttpRequest) -> Row:
    name = request.GET.get("mailbox", "")
    info = MailboxReader().find(name)
    if info is None:
        raise Http404(
            gettext("There is no mailbox %(name)r, or nobody has used it for a year.") % {"name": name}
        )
    return Row(info, persons([name])[name])


def _title(row: Row) -> str:
    return gettext("Mailbox of %(person)s") % {"person": row.person}
