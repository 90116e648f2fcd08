"""
Anchors: models without a table, for things that live in Redis.

An anchor gives a page of the control room (admin/) what Django ties to a model: an entry in the menu,
permissions, and log entries that say who did what. It has no rows, and its manager
asks no database: dumpdata and everything else that walks over all models finds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from django.db import models

_M = TypeVar("_M", bound=models.Model)


class NoRows(models.Manager[_M]):
    """A manager that never queries: the table does not exist."""

    def get_queryset(self) -> models.QuerySet[_M]:
        return super().get_queryset().none()


class Anchor(models.Model):
    """What a log entry can point to. Make one, log it, forget it; it is never saved."""

    name = models.CharField(max_length=255, primary_key=True)

    #: What people call it, if that is not its name.
    label = ""

    objects = NoRows()

    class Meta:
        abstract = True
        managed = False
        default_permissions: ClassVar[Sequence[str]] = ("view", "change")
        base_manager_name = "objects"

    def __str__(self) -> str:
        return self.label or self.name


class AddressBook(Anchor):
    """Of an address book, not the book itself. Who may look at books sees the names that are in them."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "rebuild", "remove")
        verbose_name = "address book"
        verbose_name_plural = "address books"


class CachedRow(Anchor):
    """Of a cached row, "market.item:42", or all rows of a name. Who may change it may set how often it is loaded."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "refresh", "change", "remove")
        verbose_name = "cached row"
        verbose_name_plural = "cached rows"


class Chat(Anchor):
    """Of a chat, not the chat: that is components.services.chat.Chat. Who may look at chats may not read them."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "change", "delete")
        permissions = (("view_messages_chat", "Can read the messages of chats"),)
        verbose_name = "chat"
        verbose_name_plural = "chats"


class Counter(Anchor):
    """Of a counter, not the counter itself. There is nothing to change: what was counted ends by itself."""

    class Meta(Anchor.Meta):
        default_permissions = ("view",)
        verbose_name = "counter"
        verbose_name_plural = "counters"


class Lock(Anchor):
    """Of a lock, not the lock: that is components.services.locks.Lock. Who may change it may release it by force."""

    class Meta(Anchor.Meta):
        verbose_name = "lock"
        verbose_name_plural = "locks"


class LogJob(Anchor):
    """Of a job of logs. Who may remove may let an aggregation leave, which loses what it has not counted."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "resend", "discard", "remove")
        verbose_name = "log job"
        verbose_name_plural = "logs"


class Mailbox(Anchor):
    """Of a mailbox, not the mailbox itself. Who may look at mailboxes may not read the messages."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "change", "delete")
        permissions = (("view_messages_mailbox", "Can read the messages of mailboxes"),)
        verbose_name = "mailbox"
        verbose_name_plural = "mailboxes"


class Queue(Anchor):
    """
    A task queue; its name is "<TASKS alias>/<queue>". An alias alone stands for its workers and periodic tasks.

    Who may look at queues does not see what tasks were called with, what they returned, and their tracebacks.
    """

    class Meta(Anchor.Meta):
        default_permissions = ("view", "change", "delete")
        permissions = (("view_arguments_queue", "Can see the arguments, results and tracebacks of tasks"),)
        verbose_name = "queue"
        verbose_name_plural = "queues"


class Semaphore(Anchor):
    """Of a semaphore, not the semaphore itself. Who may change it may set its limit, and evict who holds a permit."""

    class Meta(Anchor.Meta):
        verbose_name = "semaphore"
        verbose_name_plural = "semaphores"
