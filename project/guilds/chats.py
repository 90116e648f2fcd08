"""
The chat of a guild follows the guild: who comes in is added to it, who goes leaves it.

The rows are the truth. What could not be told to Redis is made good when a member opens the page of the guild. Who
was blocked in the chat stays out of it, and in the guild.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, post_save

from components.exceptions import Blocked, ChatExists, ChatNotFound, RedisUnavailable
from components.services.chat import Chat, ChatNews

from .models import Guild, Membership

logger = logging.getLogger(__name__)


def news(guild: Guild, user_id: int) -> ChatNews | None:
    """The guild's chat as this member finds it; None if he was blocked in it. Raises RedisUnavailable."""
    chat = Chat(guild.chat_id)
    try:
        return chat.news(str(user_id))
    except ChatNotFound:
        enter(guild, user_id)
    try:
        return chat.news(str(user_id))
    except ChatNotFound:
        return None


def enter(guild: Guild, user_id: int) -> None:
    """Let the member be in the chat, which is made if there is none. Raises RedisUnavailable."""
    person = str(user_id)
    try:
        try:
            Chat(guild.chat_id).add([person])
        except ChatNotFound:
            try:
                Chat.create(person, title=guild.name, id=guild.chat_id)
            except ChatExists:  # another has made it just now
                Chat(guild.chat_id).add([person])
    except Blocked:
        logger.info("User %s is blocked in the chat of the guild %s.", person, guild)


def leave(guild: Guild, user_id: int) -> None:
    """Let him not be in the chat. Raises RedisUnavailable."""
    try:
        Chat(guild.chat_id).leave(str(user_id))
    except ChatNotFound:
        return


def follow_memberships() -> None:
    """From now on the chats follow what is saved and deleted."""
    post_save.connect(_saved, sender=Membership, dispatch_uid="guilds.saved")
    post_delete.connect(_deleted, sender=Membership, dispatch_uid="guilds.deleted")


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
        logger.warning("The chat of the guild %s does not know of a change yet (%s)", guild, error)
