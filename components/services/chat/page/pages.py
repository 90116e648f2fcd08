"""
The chat page, /chat/: its version without JavaScript, and the frame that JavaScript fills.

Reading and sending work by links and forms; a message is edited, deleted and reacted to by JavaScript only. A GET
changes nothing, not even the reading position, which is moved by JavaScript, a button, or sending a message. A form
for a message contains its client id, so a message that is sent twice is stored once.
"""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from components.conf import conf
from components.exceptions import (
    ChatNotFound,
    ClientIdReused,
    ComponentsError,
    MessageNotFound,
    RedisUnavailable,
)
from components.people import note_contacts
from components.services.chat import Chat, ChatMessage, ChatNews, Inbox, Presence, Quote, Role
from components.services.chat.ids import id_for
from components.services.chat.page import rows, texts
from components.services.chat.page.forms import CreateForm
from components.services.chat.page.refusals import refusal

_PAGE = 50  # messages
_CHATS = 50  # in the list
_LEFT = _("This form created a chat that you have left since. Send it again to create another one.")


@never_cache
@login_required
@require_safe
def chats(request: HttpRequest) -> HttpResponse:
    """Show all chats of the visitor."""
    return page(request, "list", None, title=gettext("Chats"))


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def chat(request: HttpRequest, chat_id: str) -> HttpResponse:
    """Show one chat. POST sends a message."""
    news = entered(request, chat_id)
    if request.method != "POST":
        return _conversation(request, news)
    try:
        _send(request, news)
    except RedisUnavailable:
        raise
    except ComponentsError as error:
        sentence, status = refusal(error)
        more = {"client_id": _new_key()} if isinstance(error, ClientIdReused) else {}
        return _conversation(request, news, status, error=sentence, text=request.POST.get("text", ""), **more)
    return redirect("components:chat", chat_id)


def _send(request: HttpRequest, news: ChatNews) -> None:
    text = request.POST.get("text", "").replace("\r\n", "\n").strip()
    opened = Chat(news.chat_id)
    mentions: list[str] = []
    if "@" in text:
        ids = [member.user for member in opened.members()]
        name_of = rows.naming(ids)
        mentions = texts.mentioned(text, {id: name_of(id) for id in ids})
    client_id = request.POST.get("client_id") or None
    reply_to = number_in(request.POST.get("reply_to", ""))
    sent = opened.send(me(request), text, mentions=mentions, client_id=client_id, reply_to=reply_to)
    note_contacts(me(request), sent.spoken_to)


def _conversation(request: HttpRequest, news: ChatNews, status: int = 200, **more: Any) -> HttpResponse:
    opened, user = Chat(news.chat_id), me(request)
    places = {"before": "before", "after": "after", "around": "message"}
    asked = {
        place: number for place, name in places.items() if (number := number_in(request.GET.get(name, "")))
    }
    place = dict([*asked.items()][:1])
    history = opened.history(user, **place, limit=_PAGE)
    messages = history.messages
    has_newer = history.has_more if "after" in place else history.has_newer
    context = {
        "older": messages[0].seq if messages and ("after" in place or history.has_more) else None,
        "newer": messages[-1].seq if messages and has_newer else None,
        "is_older": bool(place),
        "wanted": place.get("around"),
        "quote": _quote(request, opened),
        "client_id": request.POST.get("client_id") or _new_key(),
        "present": (present := Presence(news.chat_id).look(user)),
        "silence": _silence(news),
        **more,
    }
    return page(request, "conversation", news, messages=messages, ids=present.here, status=status, **context)


def _quote(request: HttpRequest, opened: Chat) -> rows.QuoteRow | None:
    seq = number_in(request.POST.get("reply_to", "") or request.GET.get("reply", ""))
    if not seq:
        return None
    try:
        found = opened.message(me(request), seq)
    except MessageNotFound:
        return None
    quoted = Quote(seq, found.sender, found.text)
    return rows.quote_row(quoted, rows.naming([found.sender])) if found.sender else None


def number_in(text: str) -> int | None:
    """Return the number of a message in a form or an address; None if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _silence(news: ChatNews) -> str:
    if news.is_closed:
        return gettext("This chat is closed. It can be read.")
    if news.muted_until is not None and news.muted_until > datetime.now(UTC):
        return gettext("You are muted in this chat for now.")
    return ""


@login_required
@require_POST
def read(request: HttpRequest, chat_id: str) -> HttpResponse:
    """Mark the messages that the page showed as read."""
    seq = number_in(request.POST.get("seq", ""))
    entered(request, chat_id)
    if seq is not None:
        Chat(chat_id).acknowledge(me(request), seq)
    return redirect("components:chat", chat_id)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Create a chat."""
    form = CreateForm(me(request), request.POST or None, initial={"key": _new_key()})
    if request.method == "POST" and form.is_valid():
        try:
            return redirect("components:chat", _created(me(request), **form.cleaned_data))
        except RedisUnavailable:
            raise
        except ComponentsError as error:
            form.add_error(None, _LEFT if isinstance(error, ChatNotFound) else refusal(error)[0])
            if isinstance(error, ChatNotFound | ClientIdReused):
                form.data = {**request.POST.dict(), "key": _new_key()}
    status = 422 if form.errors else 200
    return page(request, "create", None, status=status, title=gettext("New chat"), form=form)


def _created(by: str, members: Sequence[str], title: str, text: str, key: str) -> str:
    text = text.replace("\r\n", "\n")
    made = Chat.create(by, members=members, title=title, text=text, id=id_for(by, key), client_id=key, by=by)
    made.news(by)  # raises ChatNotFound if they have left it since they sent the form before
    note_contacts(by, members)
    return made.id


def _new_key() -> str:
    return secrets.token_urlsafe(12)


def me(request: HttpRequest) -> str:
    """Return the id of the visitor, as services know them."""
    return str(request.user.pk)


def entered(request: HttpRequest, chat_id: str) -> ChatNews:
    """Return the state of the chat for the visitor. Raises Http404 if it does not exist, or they are not in it."""
    try:
        return Chat(chat_id).news(me(request))
    except ChatNotFound:
        raise Http404(gettext("There is no such chat.")) from None


def page(
    request: HttpRequest,
    name: str,
    opened: ChatNews | None,
    *,
    messages: Sequence[ChatMessage] = (),
    ids: Sequence[str] = (),
    title: str = "",
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """Render the page *name* inside the frame with the list of chats."""
    user = me(request)
    try:
        listed = Inbox(user).page(limit=_CHATS, after=request.GET.get("chats", ""))
    except ValueError:  # the query has no valid position in the list
        listed = Inbox(user).page(limit=_CHATS)
    both = [*listed.chats, opened] if opened else listed.chats
    name_of = rows.naming([*rows.ids_in(both, messages), *ids])
    shown = opened and rows.chat_row(opened, user, name_of)
    context |= {
        "base_template": conf().base_template,
        "api": reverse("components:api-people").removesuffix("people"),
        "me": user,
        "chats": [rows.chat_row(each, user, name_of) for each in listed.chats],
        "has_presence": conf().chat_presence,
        "more_chats": listed.next,
        "open": shown,
        "unavailable": len(listed.unavailable),
        "reactions": " ".join(texts.REACTIONS),
        "page_title": title or (shown.title if shown else ""),
        "is_writer": opened is not None and opened.role != Role.MEMBER,
    }
    if opened and name == "conversation":
        present = context["present"]
        context["here_now"] = texts.here_now([*map(name_of, present.here)], present.count)
        context["rows"] = list(rows.message_rows(opened, messages, user, name_of))
    if opened and name == "search":
        context["found"] = list(rows.found_rows(messages, context["search"], name_of))
    if opened and name == "members":
        found = rows.member_rows(context["members"], user, opened.role, name_of, datetime.now(UTC))
        context["members"] = list(found)
    return render(request, f"components/chat/{name}.html", context, status=status)
