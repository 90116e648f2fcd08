"""
The pages of a guild: its members, and their mail.

They work without scripts. Opening the mail page pulls messages. They stay in the mailbox until the player marks them
as read or reads on, so nothing is lost if the page never arrives. While Redis is away, members are shown, and mail
answers 503.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from components.exceptions import Blocked, InvalidMessage, MailboxFull, RedisUnavailable
from components.middleware import mark_unavailable
from project.market.models import Player
from project.market.views import PAGE_SIZE, player_of

from . import chats, letters
from .forms import LetterForm
from .models import Membership

#: The number of sent messages whose fate the mail page shows.
FOLLOWED = 5


@login_required
@require_safe
def guild(request: HttpRequest) -> HttpResponse:
    """Show the player's guild: its members and its chat."""
    player = _me(request)
    mine = Membership.objects.select_related("guild").filter(player=player).first()
    context: dict[str, Any] = {"player": player, "guild": mine and mine.guild}
    if mine:
        members = mine.guild.memberships.select_related("player__user")
        context["page"] = Paginator(members, PAGE_SIZE).get_page(request.GET.get("page"))
        try:
            context["chat"] = chats.news(mine.guild, player.user_id)
        except RedisUnavailable:
            context["is_away"] = True
    return render(request, "guilds/guild.html", context)


@login_required
def mail(request: HttpRequest) -> HttpResponse:
    """Show received mail, and send mail."""
    player = _me(request)
    form = LetterForm(player, request.POST or None, to=request.GET.get("to"))
    if request.method == "POST":
        try:
            if form.is_valid():
                return _write(request, player, form)
        except RedisUnavailable as error:
            form.add_error(
                None, "The message was not sent: mail is unavailable at the moment. Send it again."
            )
            away = {"player": player, "form": form, "is_away": True}
            response = render(request, "guilds/mail.html", away, status=503)
            mark_unavailable(request, response, error)
            return response
        except MailboxFull:
            form.add_error("to", "That mailbox is full. Nothing was sent.")
        except Blocked:
            form.add_error("to", "The recipient does not accept mail from you. Nothing was sent.")
        except (InvalidMessage, letters.NotAGuildMate) as error:
            form.add_error(None, str(error))
    mails = letters.mailbox(player).pull(letters.AT_ONCE)
    context = {
        "player": player,
        "form": form,
        "letters": letters.letters(mails),
        "missed": mails.missed,
        "waiting": letters.mailbox(player).depth() - len(mails),
        "last": mails[-1].id if mails else 0,
        "written": _written(request, player),
    }
    return render(request, "guilds/mail.html", context)


@login_required
@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Acknowledge all messages up to the one that was shown last."""
    try:
        letters.mailbox(_me(request)).acknowledge(int(request.POST.get("upto", "")))
    except ValueError:
        messages.error(
            request, "The form does not say up to which message you have read. Nothing has changed."
        )
    return redirect("guilds:mail")


@login_required
@require_safe
def contacts(request: HttpRequest) -> JsonResponse:
    """Return recent contacts for the field on the mail page, in the format of the API."""
    found = letters.contacts_of(_me(request))
    told = [{"id": each.id, "label": each.label, "touched_at": each.touched_at.isoformat()} for each in found]
    return JsonResponse({"contacts": told}, headers={"Cache-Control": "no-store"})


def _write(request: HttpRequest, player: Player, form: LetterForm) -> HttpResponse:
    given = form.cleaned_data
    to: Player = given["to"].player
    pushed = letters.write(player, to, given["text"], picture=given["picture"], client_id=given["client_id"])
    entry = [str(to.user_id), str(to), pushed.id, given["text"][:60] or "A picture"]
    others = [each for each in request.session.get("written", []) if each[:3] != entry[:3]]
    request.session["written"] = [entry, *others][:FOLLOWED]
    if pushed.is_duplicate:
        messages.info(request, f"This message was already sent to {to}, and was not sent again.")
    else:
        messages.success(request, f"Sent to {to}.")
    return redirect("guilds:mail")


def _written(request: HttpRequest, player: Player) -> list[dict[str, Any]]:
    """Return what became of the last messages that were written in this session."""
    return [
        {"to": name, "text": text, "delivery": letters.fate(player, recipient, message)}
        for recipient, name, message, text in request.session.get("written", [])
    ]


def _me(request: HttpRequest) -> Player:
    player = player_of(request.user)
    assert player is not None, "the view needs login_required"
    return player
