"""
The chat of a guild follows the guild: new members are added to it, and former members leave it.

The database decides who is a member. A change that did not reach Redis is repaired when a member opens the page of
the guild. Members who are blocked in the chat stay out of it, but remain in the guild.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, post_save, pre_save

from components.exceptions import Blocked, ChatExists, ChatNotFound, RedisUnavailable
from components.services.chat import Chat, ChatNews

from .models import Guild, Membership

logger = logging.getLogger(__name__)


def news(guild: Guild, user_id: int) -> ChatNews | None:
    """Return the guild's chat as this member sees it; None if they are blocked in it. Raises RedisUnavailable."""
    chat = Chat(guild.chat_id)
    try:
        return chat.news(str(user_id))
    except ChatNotFound:
        enter(guild, user_id)
    try:
        return chat.news(str(user_id))
    except ChatNotFound:
        return None


def enter(guild: Guild, *user_ids: int) -> None:
    """
    Add members to the chat, which is created if there is none; then the first of them owns it.

    Raises RedisUnavailable.
    """
    people = [str(user_id) for user_id in user_ids]
    try:
        try:
            Chat(guild.chat_id).add(people)
        except ChatNotFound:
            try:
                Chat.create(people[0], members=people[1:], title=guild.name, id=guild.chat_id)
            except ChatExists:  # another process has just created it
                Chat(guild.chat_id).add(people)
    except Blocked as error:
        logger.info("The chat of the guild %s: %s", guild, error)


def leave(guild: Guild, user_id: int) -> None:
    """Remove the user from the chat. Raises RedisUnavailable."""
    try:
        Chat(guild.chat_id).leave(str(user_id))
    except ChatNotFound:
        return


def follow_memberships() -> None:
    """Let the chats follow memberships that are saved and deleted."""
    pre_save.connect(_saving, sender=Membership, dispatch_uid="guilds.saving")
    post_save.connect(_saved, sender=Membership, dispatch_uid="guilds.saved")
    post_delete.connect(_deleted, sender=Membership, dispatch_uid="guilds.deleted")


def _saving(*, instance: Membership, raw: bool, **kwargs: Any) -> None:
    before = None if raw else Membership.objects.select_related("guild").filter(pk=instance.pk).first()
    if before and before.guild_id != instance.guild_id:
        _after_commit(leave, before)


def _saved(*, instance: Membership, raw: bool, **kwargs: Any) -> None:
    if not raw:
        _after_commit(enter, instance)


def _deleted(*, instance: Membership, **kwargs: Any) -> None:
    _after_commit(leave, instance)


def _after_commit(do: Callable[[Guild, int], None], membership: Membership) -> None:
    transaction.on_commit(partial(_do, do, membership.guild, membership.player.user_id))


def _do(do: Callable[[Guild, int], None], guild: Guild, user_id: int) -> None:
    try:
        do(guild, user_id)
    except RedisUnavailable as error:
        logger.warning("A change was not applied to the chat of the guild %s (%s)", guild, error)
