"""
The errors of this app, named for what happened. All of them derive from ComponentsError. Errors for a wrong argument
are also a TypeError or ValueError, and errors of locks also derive from the ones that redis-py raises.
"""

from django.core.exceptions import ImproperlyConfigured
from redis.exceptions import LockError, LockNotOwnedError


class ComponentsError(Exception):
    """Base of every error that this app raises. Do not raise directly."""


class RedisUnavailable(ComponentsError):
    """Redis did not answer, or refused the command. The call may be repeated."""


class RedisRefused(RedisUnavailable):
    """
    Redis is running but refused the command: it is full, read-only, loading its data, or does not know the user. Also
    raised if this process has no free connection left.
    """


class NoEventLoop(ComponentsError, RuntimeError):
    """An asynchronous client was requested outside of a coroutine."""


class RedisUnsuitable(RedisRefused, ImproperlyConfigured):
    """
    This app cannot work with the Redis that the settings name, or with these settings; the message says what to
    change. Repeating the call does not help.
    """


class RedisNotPrivate(ComponentsError):
    """A test asked for the Redis that the settings name, and not for a private one; nothing was sent."""


class RedisNotFound(ComponentsError):
    """No Redis server is installed here, and the settings name none."""


class RedisNotStarted(ComponentsError):
    """The embedded Redis server could not be started, or exited at once."""


class RedisAlreadyRunning(ComponentsError):
    """Another process holds the embedded Redis server of this folder."""


class NotSerializable(ComponentsError, TypeError):
    """A task argument is not JSON, or an entry of a task's metadata is not text."""


class BodyTooLarge(ComponentsError, ValueError):
    """A task's arguments, as JSON, are larger than the backend's max_body; or its metadata exceed 4,096 bytes."""


class NotEnqueued(ComponentsError):
    """A middleware around enqueueing did not pass on the tasks that it was given, so none was stored."""


class ResultTooLarge(ComponentsError, ValueError):
    """The return value of a task, as JSON, is larger than the backend's max_result."""


class StepRefused(ComponentsError):
    """Redis did not execute a step of a worker, perhaps because of the data in the step."""


class EndNotStored(ComponentsError):
    """Redis refused to store the result or the error of a task; only that the task has ended is known."""


class InvalidQueueName(ComponentsError, ValueError):
    """A queue name is empty, too long, or contains a control character."""


class InvalidSchedule(ComponentsError, ValueError):
    """A schedule of a periodic task cannot be read, or would never tick."""


class UnknownTask(ComponentsError):
    """A stored task names a function that is not declared with @task."""


class UnknownFormat(ComponentsError):
    """A stored entry was written by a newer release than this one."""


class WorkerDied(ComponentsError):
    """Workers that ran the task died, or stopped renewing their leases, too often."""


class TaskCancelled(ComponentsError):
    """The task was cancelled before it had ended."""


class TaskTimedOut(ComponentsError):
    """A task ran longer than its timeout."""


class MailNotSent(ComponentsError):
    """The backend that sends queued mail reported, without an error, that it sent nothing."""


class InvalidName(ComponentsError, ValueError):
    """A name is empty, too long or not text."""


class InvalidDuration(ComponentsError, ValueError):
    """A number of seconds is negative, infinite, not a number, or zero where that is not allowed."""


class InvalidLimit(ComponentsError, ValueError):
    """A limit or a weight is not a whole number of at least 1, or a permit's weight exceeds the limit."""


class LockNotAcquired(ComponentsError, LockError):
    """The lock was not free in time."""


class LockLost(ComponentsError, LockNotOwnedError):
    """The caller no longer holds the lock: its time ran out, or it was released by force."""


class NotReplicated(ComponentsError):
    """Fewer replicas than required have the lock, so it was given back."""


class StaleFence(ComponentsError):
    """A write was refused because its fencing token is older than that of an earlier write."""


class InvalidFence(ComponentsError, ValueError):
    """A fencing token is not a whole number from 1 to 2^63 - 1."""


class SemaphoreFull(ComponentsError):
    """No permit was free in time."""


class PermitLost(ComponentsError):
    """The permit is no longer valid: its lease ran out, or it was evicted."""


class PermitReleased(ComponentsError):
    """The permit was released before."""


class ForeignPermit(ComponentsError, ValueError):
    """The permit belongs to another semaphore."""


class InvalidMessage(ComponentsError, ValueError):
    """A message is empty, too long, or contains something that is not text or not JSON."""


class ChatNotFound(ComponentsError):
    """There is no such chat, or the person is not in it; the error does not say which."""


class ChatExists(ComponentsError):
    """A chat with this id exists already."""


class ChatClosed(ComponentsError):
    """The chat was closed: it can be read, but nothing can be sent to it."""


class NotAllowed(ComponentsError):
    """The person's role in the chat does not include this."""


class Muted(ComponentsError):
    """The person may not send to the chat for now."""


class Blocked(ComponentsError):
    """The person may not come back into the chat, or the recipient accepts no mail from the sender."""


class TooFast(ComponentsError):
    """The rate limit is exceeded; *retry_after* is the number of seconds after which to try again."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooManyMembers(ComponentsError, ValueError):
    """The chat would have more members than its limit."""


class TooManyChats(ComponentsError, ValueError):
    """A person has created, or is in, as many chats as the settings of the site allow."""


class TooManyBlocked(ComponentsError, ValueError):
    """A chat or a mailbox already blocks as many people as it can; unblock others first."""


class NotAMember(ComponentsError):
    """The person is not a member of the chat."""


class MessageNotFound(ComponentsError):
    """There is no such message, or the person may not see it."""


class MailboxFull(ComponentsError):
    """The mailbox has as many messages as its limit, and its policy is to refuse more."""


class WaitersFull(ComponentsError):
    """As many clients wait in this process as its limit allows."""


class InvalidPrefix(ComponentsError, ValueError):
    """The prefix to complete is empty, too long, or not text."""


class InvalidEntry(ComponentsError, ValueError):
    """An entry's id or label is empty, too long, or not text."""


class BookNotFound(ComponentsError):
    """There is no address book with this name: nothing was ever added to it, or it was removed."""


class LoadSuperseded(ComponentsError):
    """Another load of the same address book began, or this one paused for an hour. Nothing of it is kept."""


class InvalidCount(ComponentsError, ValueError):
    """The number to count is not a whole number, or too large."""


class CountRefused(ComponentsError):
    """A key in Redis that belongs to counters holds something else, so some or all events were not counted."""


class InvalidPrecision(ComponentsError, ValueError):
    """The requested precision is not in COMPONENTS["COUNTER_PRECISIONS"]."""


class InvalidRange(ComponentsError, ValueError):
    """The requested time of a counter or a report is reversed, in the future, or older than what is kept."""


class InvalidShape(ComponentsError, ValueError):
    """
    A cached row is declared without columns, or with columns that have no name, the same name or an unknown kind.
    """


class RowNotSerializable(ComponentsError, TypeError):
    """A value of a row would not come back from the cache unchanged."""


class RowTooLarge(ComponentsError, ValueError):
    """A row is larger than the limit for cached rows."""


class RowNotLoaded(ComponentsError):
    """A row was not loaded in time: another process is still loading it, or the row kept changing."""


class RowsUnavailable(ComponentsError):
    """The database did not answer while rows were loaded. The call may be repeated."""


class InvalidLevel(ComponentsError, ValueError):
    """There is no such level of places, or a place cannot be divided by it."""


class LogsFull(ComponentsError):
    """As many bytes of logs are in flight as the limit allows, and no room was made in time."""


class ChunkTooLarge(ComponentsError, ValueError):
    """A chunk of logs is larger than the limit of bytes in flight."""


class CopiedElsewhere(ComponentsError):
    """The next chunk does not begin where the copied part of the file ends; read the file again from that place."""


class FileDiffers(ComponentsError):
    """A file begins like one that was copied, but is shorter or differs from it later."""


class FileDamaged(ComponentsError):
    """A file ends too early or cannot be decompressed. Everything before that was read."""


class AggregationNotFound(ComponentsError):
    """The job has no aggregation with this name: it has not joined, or it has left."""


class ChunkNotFound(ComponentsError):
    """The lines of a chunk are not in Redis: others counted it after its lease, or Redis evicted it."""


class ChunksLost(ComponentsError):
    """Others have claimed some of the chunks, so nothing was added; *lost* has their ids."""

    def __init__(self, message: str, lost: frozenset[str]) -> None:
        super().__init__(message)
        self.lost = lost


class WorkersDiffer(ComponentsError):
    """Workers of one aggregation would count the same lines in different ways."""


class InvalidAddress(ComponentsError, ValueError):
    """The text to locate is not an IPv4 or IPv6 address."""


class InvalidGeoSource(ComponentsError, ValueError):
    """A file of a geolocation database cannot be imported; the table is unchanged."""


class GeoTableNotFound(ComponentsError):
    """There is no table of addresses with this name: none was ever imported."""


class GeoTableDamaged(ComponentsError):
    """Parts of a table of addresses are missing in Redis, or differ from what was written."""


class InvalidFormat(ComponentsError, ValueError):
    """A format of log lines is not known, or its regular expression cannot be used."""


class InvalidRanges(ComponentsError, ValueError):
    """Ranges of addresses overlap, are reversed or unsorted, or have the wrong type."""


class UnknownKernel(ComponentsError, ValueError):
    """There is no kernel with this name to count logs."""


class ExtraNotInstalled(ComponentsError, ImportError):
    """A package that an optional part of this app needs is not installed; the message says how to install it."""
