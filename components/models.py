"""
Anchors: models without a table, for things in Redis.

An anchor gives a page of the control room what Django ties to a model: an entry in the menu, permissions, and log
entries. It has no rows, and its manager asks no database, so dumpdata and everything else that goes through all
models finds nothing.
"""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from django.db import models
from django.utils.translation import gettext_lazy as _

_M = TypeVar("_M", bound=models.Model)


class NoRows(models.Manager[_M]):
    """A manager that never queries: the table does not exist."""

    def get_queryset(self) -> models.QuerySet[_M]:
        return super().get_queryset().none()


class Anchor(models.Model):
    """The object of a log entry. It is created only to be logged, and never saved."""

    name = models.CharField(max_length=255, primary_key=True)

    #: The displayed name, if it differs from the name.
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
    """The anchor of an address book. Users who may view books see the names in them."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "rebuild", "remove")
        verbose_name = _("address book")
        verbose_name_plural = _("address books")


class CachedRow(Anchor):
    """The anchor of a cached row, "market.item:42", or of a name. Users who may change it may set its delay."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "refresh", "change", "remove")
        verbose_name = _("cached row")
        verbose_name_plural = _("cached rows")


class Chat(Anchor):
    """The anchor of a chat, not services.chat.Chat. Users who may view chats may not read their messages."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "change", "delete")
        permissions = (("view_messages_chat", _("Can read the messages of chats")),)
        verbose_name = _("chat")
        verbose_name_plural = _("chats")


class Counter(Anchor):
    """The anchor of a counter. There is nothing to change, since counts expire by themselves."""

    class Meta(Anchor.Meta):
        default_permissions = ("view",)
        verbose_name = _("counter")
        verbose_name_plural = _("counters")


class Lock(Anchor):
    """The anchor of a lock, not components.services.locks.Lock. Users who may change it may release it by force."""

    class Meta(Anchor.Meta):
        verbose_name = _("lock")
        verbose_name_plural = _("locks")


class LogJob(Anchor):
    """The anchor of a job of logs. Users who may remove it may remove an aggregation uncounted."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "resend", "discard", "remove")
        verbose_name = _("log job")
        verbose_name_plural = _("logs")


class Mailbox(Anchor):
    """The anchor of a mailbox. Users who may view mailboxes may not read their messages."""

    class Meta(Anchor.Meta):
        default_permissions = ("view", "change", "delete")
        permissions = (("view_messages_mailbox", _("Can read the messages of mailboxes")),)
        verbose_name = _("mailbox")
        verbose_name_plural = _("mailboxes")


class Overview(Anchor):
    """The anchor of the first page of the control room. Users also need permission to view what its cards show."""

    class Meta(Anchor.Meta):
        default_permissions = ("view",)
        verbose_name = _("overview")
        verbose_name_plural = _("overview")


class Queue(Anchor):
    """
    The anchor of a task queue, with the name "<TASKS alias>/<queue>".

    An alias alone stands for its workers and periodic tasks. Users who may view queues do not see arguments, results
    and tracebacks of tasks.
    """

    class Meta(Anchor.Meta):
        default_permissions = ("view", "change", "delete")
        permissions = (("view_arguments_queue", _("Can see the arguments, results and tracebacks of tasks")),)
        verbose_name = _("queue")
        verbose_name_plural = _("queues")


class RateLimit(Anchor):
    """The anchor of a rate limit. There is nothing to change, since the code declares the rates."""

    class Meta(Anchor.Meta):
        default_permissions = ("view",)
        verbose_name = _("rate limit")
        verbose_name_plural = _("rate limits")


class Semaphore(Anchor):
    """The anchor of a semaphore. Users who may change it may set its limit and evict holders."""

    class Meta(Anchor.Meta):
        verbose_name = _("semaphore")
        verbose_name_plural = _("semaphores")
