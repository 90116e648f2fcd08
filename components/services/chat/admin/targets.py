"""The objects that the query of a request names: a chat, a person in it, a message of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import MAXYEAR
from functools import cached_property

from django.http import Http404, HttpRequest
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import number_in
from components.exceptions import InvalidName
from components.formatting import grouped, legible, shortened
from components.people.person import Person, persons
from components.services.chat import Chat, ChatInfo, ChatMessage, ChatReader, Inbox, Member, Role

#: The sentence about each role, and its name in the list of members.
_IN_ROLE = {
    Role.OWNER: _("Role: owner, since %(joined)s."),
    Role.MODERATOR: _("Role: moderator, since %(joined)s."),
    Role.MEMBER: _("Role: member, since %(joined)s."),
}
ROLES = {Role.OWNER: _("Owner"), Role.MODERATOR: _("Moderator"), Role.MEMBER: _("Member")}


@dataclass(frozen=True)
class Row:
    """A chat as the pages show it."""

    info: ChatInfo

    @property
    def title(self) -> str:
        """Return the title, which several chats can share."""
        return shortened(legible(self.info.title or self.info.id))

    @property
    def name(self) -> str:
        """Return the title with the id, which is unique."""
        return f"{self.title} ({self.info.id})" if self.info.title else self.info.id

    @property
    def size(self) -> str:
        """Return the size of the chat, in a sentence."""
        return gettext("It has %(members)s members, and %(messages)s messages and events.") % self.figures

    @property
    def figures(self) -> dict[str, str]:
        """Return what sentences about the size have placeholders for."""
        names = ("messages", "members", "first_seq", "last_seq")
        return {name: grouped(getattr(self.info, name)) for name in names}

    @property
    def trail(self) -> str:
        """Return the title of the page of the chat."""
        return gettext("Chat %(title)s") % {"title": self.title}


@dataclass(frozen=True)
class Seat:
    """A member as the pages show them."""

    person: Person
    member: Member

    @property
    def role(self) -> str:
        return str(ROLES.get(self.member.role, self.member.role))

    @property
    def is_muted_for_good(self) -> bool:
        until = self.member.muted_until
        return until is not None and until.year == MAXYEAR


@dataclass(frozen=True)
class Target:
    """A chat, and the person or the message in it that the query names."""

    row: Row
    user: str = ""
    seq: int = 0

    @classmethod
    def of(cls, request: HttpRequest) -> Target:
        user = request.GET.get("user", "")
        try:
            user = user and Inbox(user).user  # makes no call to Redis
        except InvalidName:
            nobody = gettext("Nobody can have this name: a name is text of 1 to 500 characters.")
            raise Http404(nobody) from None
        return cls(find_row(request), user, number_in(request.GET.get("seq", "")) or 0)

    @property
    def chat(self) -> Chat:
        return Chat(self.row.info.id)

    @cached_property
    def person(self) -> Person:
        return persons([self.user]).get(self.user, Person(""))

    @property
    def member(self) -> Member | None:
        members = self.chat.members() if self.user else []
        return next((member for member in members if member.user == self.user), None)

    @property
    def is_blocked(self) -> bool:
        return self.user in self.chat.blocked()

    @property
    def message(self) -> ChatMessage | None:
        """Return the message with this number; None if there is none, or it is an event."""
        if not self.seq:
            return None
        page = ChatReader().messages(self.row.info.id, before=self.seq + 1, limit=1)
        return next((item for item in page.messages if item.seq == self.seq and item.event is None), None)

    def written(self, sentence: str | Promise, **more: str) -> str:
        its = {"chat": self.row.name, "title": self.row.title, **self.row.figures}
        return str(sentence) % {
            **its,
            "user": self.user,
            "who": self.person,
            "seq": grouped(self.seq),
            **more,
        }


def find_row(request: HttpRequest) -> Row:
    """Return the chat that the query names. Raises Http404."""
    chat_id = request.GET.get("chat", "")
    info = ChatReader().find(chat_id)
    if info is None:
        raise Http404(gettext("There is no chat %(chat)r.") % {"chat": chat_id})
    return Row(info)


def role_of(member: Member) -> str:
    """Return the role of a member, in a sentence."""
    joined = f"{timezone.localtime(member.joined_at):%Y-%m-%d %H:%M:%S %Z}"
    return str(_IN_ROLE[Role(member.role)]) % {"joined": joined}
