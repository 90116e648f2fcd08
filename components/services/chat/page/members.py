"""The members of a chat, with forms for what the visitor may do to them and to the chat."""

from collections.abc import Callable, Mapping
from functools import partial

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from components.exceptions import ComponentsError, RedisUnavailable
from components.people import note_contacts
from components.services.chat import Chat, Role
from components.services.chat.page.forms import InviteForm, checked_title
from components.services.chat.page.pages import entered, me, page
from components.services.chat.page.refusals import refusal

_AN_HOUR = 3_600.0  # seconds

_TO_A_MEMBER: Mapping[str, Callable[..., object]] = {
    "kick": Chat.kick,
    "block": Chat.block,
    "mute": partial(Chat.mute, seconds=_AN_HOUR),
    "unmute": Chat.unmute,
}
_TO_THE_CHAT: Mapping[str, Callable[..., object]] = {"close": Chat.close, "reopen": Chat.reopen}


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def members(request: HttpRequest, chat_id: str) -> HttpResponse:
    """List the members. POST carries out the action that the form names."""
    entered(request, chat_id)
    if request.method != "POST":
        return _listing(request, chat_id)
    try:
        _act(request, Chat(chat_id))
    except RedisUnavailable:
        raise
    except ValidationError as error:
        return _listing(request, chat_id, 422, " ".join(error.messages))
    except ComponentsError as error:
        text, status = refusal(error)
        return _listing(request, chat_id, status, text)
    if request.POST.get("action") == "leave":
        return redirect("components:chats")
    return redirect("components:chat-members", chat_id)


def _act(request: HttpRequest, chat: Chat) -> None:
    by, action = me(request), request.POST.get("action", "")
    if action == "add":
        note_contacts(by, chat.add(_invited(request), by=by))
    elif action == "rename":
        chat.rename(checked_title(request.POST.get("title", "").strip()), by=by)
    elif action in list(Role):
        chat.set_role(request.POST.get("user", ""), Role(action), by=by)
    elif action in _TO_A_MEMBER:
        _TO_A_MEMBER[action](chat, request.POST.get("user", ""), by=by)
    elif action in _TO_THE_CHAT:
        _TO_THE_CHAT[action](chat, by=by)
    elif action == "leave":
        chat.leave(by)
    else:
        raise ValidationError(gettext("The form names no known action."))


def _invited(request: HttpRequest) -> list[str]:
    """Return the ids of the people named in the form. Raises ValidationError."""
    form = InviteForm(me(request), request.POST)
    if not form.is_valid():
        raise ValidationError(list(form.errors["names"]))
    ids: list[str] = form.cleaned_data["names"]
    return ids


def _listing(request: HttpRequest, chat_id: str, status: int = 200, error: str = "") -> HttpResponse:
    news = entered(request, chat_id)
    people = Chat(chat_id).members(user=me(request))
    is_open = Chat(chat_id).info().settings.is_open
    return page(
        request,
        "members",
        news,
        title=gettext("Members"),
        status=status,
        ids=[member.user for member in people],
        members=people,
        may_add=is_open or news.role != Role.MEMBER,
        is_owner=news.role == Role.OWNER,
        is_closed=news.is_closed,
        chat_title=news.title,
        error=error,
        invite=InviteForm(me(request), initial={"names": request.POST.get("names", "")}),
    )
