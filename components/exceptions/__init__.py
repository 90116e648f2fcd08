"""
What can go wrong, named for what happened. Every error of this app derives from ComponentsError;
those that stand for a wrong argument are also a TypeError or ValueError, and those of a lock also what redis-py
raises there.
"""

from django.core.exceptions import ImproperlyConfigured
from redis.exceptions import LockError, LockNotOwnedError

from components.exceptions.base import ComponentsError as ComponentsError
from components.exceptions.logs import *  # noqa: F403


class RedisUnavailable(ComponentsError):
    """Redis did not answer, or would not take the command. What was asked may be asked again."""


class RedisRefused(RedisUnavailable):
    """
    Redis runs and did not take the command now: it is full, read-only, loading its data, or does not know the user.
    Also raised where this process has no connection left to ask it with.
    """


class NoEventLoop(ComponentsError, RuntimeError):
    """An asynchronous client was asked for outside of a coroutine."""


class RedisUnsuitable(RedisRefused, ImproperlyConfigured):
    """
    This app cannot work with the Redis that the settings name, or not with these settings: the message says what to
    change. To ask again does not help.
    """


class RedisNotFound(ComponentsError):
    """No Redis server is installed here, and none was named in the settings."""


class RedisNotStarted(ComponentsError):
    """The embedded Redis server could not be started, or ended at once."""


class RedisAlreadyRunning(ComponentsError):
    """Another process holds the embedded Redis server of this folder."""


class NotSerializable(ComponentsError, TypeError):
    """A task argument is not JSON."""


class BodyTooLarge(ComponentsError, ValueError):
    """A task's arguments, as JSON, are larger than the backend's max_body."""


class ResultTooLarge(ComponentsError, ValueError):
    """What a task returned, as JSON, is larger than the backend's max_result."""


class StepRefused(ComponentsError):
    """Redis did not carry out a step of a worker, for a reason that may lie in what the step holds."""


class EndNotStored(ComponentsError):
    """Redis refused to store how a task had ended; only that it has ended is known."""


class InvalidQueueName(ComponentsError, ValueError):
    """A queue name is empty, too long, or holds a control character."""


class InvalidSchedule(ComponentsError, ValueError):
    """A schedule of a periodic task cannot be read, or would never tick."""


class UnknownTask(ComponentsError):
    """A stored task names something that is not declared with @task."""


class UnknownFormat(ComponentsError):
    """A stored entry was written by a newer release than this one."""


class WorkerDied(ComponentsError):
    """The worker that ran the task died or stopped renewing its lease, once too often."""


class TaskCancelled(ComponentsError):
    """The task was cancelled before it had ended."""


class TaskTimedOut(ComponentsError):
    """A task ran longer than its timeout."""


class MailNotSent(ComponentsError):
    """The backend that sends a queued mail raised no error, and said that it sent nothing."""


class InvalidName(ComponentsError, ValueError):
    """A name of a lock or a semaphore is empty, too long or no text."""


class InvalidDuration(ComponentsError, ValueError):
    """A number of seconds is negative, zero where it may not be, infinite or no number."""


class InvalidLimit(ComponentsError, ValueError):
    """A limit or a weight is no whole number from 1 on, or a permit's weight exceeds the limit."""


class LockNotAcquired(ComponentsError, LockError):
    """The lock was not free in time."""


class LockLost(ComponentsError, LockNotOwnedError):
    """The lock is no longer ours: its time ran out, or it was released by force."""


class NotReplicated(ComponentsError):
    """Fewer replicas than asked have the lock, so it was given back."""


class StaleFence(ComponentsError):
    """A write carried an older fencing token than one before it, and was refused."""


class InvalidFence(ComponentsError, ValueError):
    """A fencing token is no whole number from 1 to 2^63 - 1."""


class SemaphoreFull(ComponentsError):
    """No permit was free in time."""


class PermitLost(ComponentsError):
    """The permit is no longer valid: its lease ran out, or it was evicted."""


class PermitReleased(ComponentsError):
    """The permit was released before."""


class ForeignPermit(ComponentsError, ValueError):
    """The permit is of another semaphore."""


class InvalidMessage(ComponentsError, ValueError):
    """A message is empty, too long, or holds what is no text or no JSON."""


class ChatNotFound(ComponentsError):
    """There is no such chat, or the person is not in it: which of them is not told."""


class ChatExists(ComponentsError):
    """A chat of this id is there already."""


class ChatClosed(ComponentsError):
    """The chat was closed: it can be read, and nothing can be said in it."""


class NotAllowed(ComponentsError):
    """The person's role in the chat does not include this."""


class Muted(ComponentsError):
    """The person may not speak in the chat for now."""


class Blocked(ComponentsError):
    """The person may not come back into the chat, or the recipient takes no mail from the sender."""


class TooFast(ComponentsError):
    """More was sent than the rate limit allows; *retry_after* says in how many seconds there is room."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooManyMembers(ComponentsError, ValueError):
    """The chat would have more members than its limit."""


class TooManyChats(ComponentsError, ValueError):
    """A person has created, or is in, as many chats as the settings of the site allow."""


class TooManyBlocked(ComponentsError, ValueError):
    """A chat or a mailbox blocks as many people as it can: unblock others first."""


class NotAMember(ComponentsError):
    """The one whom something was to be done to is not in the chat."""


class MessageNotFound(ComponentsError):
    """There is no such message, or the person may not see it."""


class MailboxFull(ComponentsError):
    """The mailbox has as many messages as its limit, and its policy is to refuse."""


class WaitersFull(ComponentsError):
    """As many wait in this process as its limit allows."""


class InvalidPrefix(ComponentsError, ValueError):
    """What is to be completed is empty, too long, or holds what is no text."""


class InvalidEntry(ComponentsError, ValueError):
    """An entry's id or label is empty, too long, or holds what is no text."""


class BookNotFound(ComponentsError):
    """There is no address book of this name: nothing was ever added to it, or it was removed."""


class LoadSuperseded(ComponentsError):
    """Another load of the same address book began, or this one paused for an hour: nothing of it is kept."""


class InvalidCount(ComponentsError, ValueError):
    """What is to be counted is no whole number, or too large."""


class CountRefused(ComponentsError):
    """Something else stands where counts belong in Redis, so they were not counted, or not all."""


class InvalidPrecision(ComponentsError, ValueError):
    """A counter is asked for a precision that is none of COMPONENTS["COUNTER_PRECISIONS"]."""


class InvalidRange(ComponentsError, ValueError):
    """A counter or a report is asked for a time that is turned round, lies ahead, or is older than what it keeps."""


class InvalidShape(ComponentsError, ValueError):
    """A cached row is declared with columns of no name, the same name, an unknown kind, or with none."""


class RowNotSerializable(ComponentsError, TypeError):
    """A value of a row cannot be written so that it comes back as it was."""


class RowTooLarge(ComponentsError, ValueError):
    """A row is larger than what is cached."""


class RowNotLoaded(ComponentsError):
    """A row was not loaded in time: another loads it, or it changed all the time."""


class RowsUnavailable(ComponentsError):
    """The database did not answer who wanted to cache rows. What was asked may be asked again."""


class ExtraNotInstalled(ComponentsError, ImportError):
    """What an optional part of this app needs is not installed; the message says how to install it."""
