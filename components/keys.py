"""
The keyspace: every key of this app, its Redis type, and who lets it go.

A key reads <prefix>:<pattern>:{<name>}:<part>. The braces are a cluster's hash tag: all keys of one
entity lie in one slot, so that one script can change them together. What is stored carries the number
of its format, so that two releases can run beside each other during a deployment.
"""

from __future__ import annotations

from functools import lru_cache

from components.conf import conf


def _key(pattern: str, name: str, part: str) -> str:
    return _stem(conf().prefix, pattern, name) + part


@lru_cache(maxsize=1_024)
def _stem(prefix: str, pattern: str, name: str) -> str:
    """What all keys of one entity begin with."""
    if not name:
        raise ValueError(
            f"A name of {pattern} is empty; without a name its keys would lie in no common slot."
        )
    tag = name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return f"{prefix}:{pattern}:{{{tag}}}:"


# Task queues. The entity is the backend alias: one script serves many queues. (services/queues)


def queue_tasks(alias: str) -> str:
    """HASH id -> task record, as pushed. Entries go when the task succeeds or leaves the dead set."""
    return _key("queues", alias, "tasks")


def queue_runs(alias: str) -> str:
    """HASH id -> run record: starts, workers, token. From the first claim; goes with the task record."""
    return _key("queues", alias, "runs")


def queue_errors(alias: str) -> str:
    """HASH id -> JSON list of what went wrong, oldest first. Goes with the task record."""
    return _key("queues", alias, "errors")


def queue_progress(alias: str) -> str:
    """HASH id -> JSON, how far a task says it is. Goes with the task record."""
    return _key("queues", alias, "progress")


def queue_uniques(alias: str) -> str:
    """HASH unique key -> id of the unfinished task that has it. Goes when that task ends."""
    return _key("queues", alias, "uniques")


def queue_periodic(alias: str) -> str:
    """ZSET tick name by the microsecond of its last tick. Stays."""
    return _key("queues", alias, "periodic")


def queue_awaited(alias: str) -> str:
    """SET of ids whose end somebody waits for. An entry goes when the task ends."""
    return _key("queues", alias, "awaited")


def queue_ended(alias: str, task_id: str) -> str:
    """LIST of a token that says "it has ended" to who waits. Expires after a minute."""
    return _key("queues", alias, f"ended:{task_id}")


def queue_result(alias: str, task_id: str) -> str:
    """STRING, the whole of a successful task. Expires after its result_ttl."""
    return _key("queues", alias, f"result:{task_id}")


def queue_names(alias: str) -> str:
    """SET of the queues that ever had a task. Stays."""
    return _key("queues", alias, "names")


def queue_paused(alias: str) -> str:
    """SET of the queues that are paused. An entry goes on resume."""
    return _key("queues", alias, "paused")


def queue_ready(alias: str, queue: str) -> str:
    """ZSET id by rank (priority) and the millisecond it became runnable. Goes when claimed."""
    return _key("queues", alias, f"ready:{queue}")


def queue_delayed(alias: str, queue: str) -> str:
    """ZSET id by the microsecond it is due. Goes when promoted to ready."""
    return _key("queues", alias, f"delayed:{queue}")


def queue_parked(alias: str, limit: str) -> str:
    """ZSET "id queue" of tasks by place that wait for room under a limit. Goes when due. Expires after days."""
    return _key("queues", alias, f"parked:{limit}")


def queue_unparked(alias: str, call: str) -> str:
    """STRING, what was answered to who let a parked task be due, if it asks again. Expires after a minute."""
    return _key("queues", alias, f"unparked:{call}")


def queue_running(alias: str, queue: str) -> str:
    """ZSET id by the millisecond its lease ends. Goes when acked, given back or taken over."""
    return _key("queues", alias, f"running:{queue}")


def queue_dead(alias: str, queue: str) -> str:
    """ZSET id by the millisecond it died. Goes by dead_ttl and dead_limit."""
    return _key("queues", alias, f"dead:{queue}")


def queue_successful(alias: str, queue: str) -> str:
    """ZSET id by the millisecond it succeeded. Goes by result_ttl and successful_limit."""
    return _key("queues", alias, f"successful:{queue}")


def queue_wake(alias: str, queue: str) -> str:
    """LIST of at most one token that wakes a worker of the queue; it says "look", and carries no data."""
    return _key("queues", alias, f"wake:{queue}")


def queue_wake_all(alias: str) -> str:
    """LIST of at most one token that wakes a worker of all queues when a queue is used the first time."""
    return _key("queues", alias, "wake-all")


def queue_wake_poller(alias: str) -> str:
    """LIST of at most one token that wakes a poller when a task is due earlier than all others."""
    return _key("queues", alias, "wake-poller")


def queue_workers(alias: str) -> str:
    """ZSET worker id by the millisecond of its last heartbeat. Goes on leaving, or a day after the last."""
    return _key("queues", alias, "workers")


def queue_worker(alias: str, worker_id: str) -> str:
    """HASH, what a worker says of itself, and its last request with the answer. Expires a day after the last."""
    return _key("queues", alias, f"worker:{worker_id}")


def queue_order(alias: str, worker_id: str) -> str:
    """STRING, what a worker was asked to do: quiet or stop. Expires after a day."""
    return _key("queues", alias, f"order:{worker_id}")


# Locks. The entity is a bucket of names; for a key of the caller's own it is that key's slot. (services/locks)


def _lock_key(tag: str, part: str) -> str:
    """In the slot of the caller's own key its tag stands as it is there; only a closing brace cannot."""
    if "}" in tag or not ("{" in tag or "%" in tag):
        return _key("locks", tag, part)
    return f"{conf().prefix}:locks:{{{tag}}}:{part}"


def lock(tag: str, name: str) -> str:
    """STRING, the token of the holder. Goes on release. Expires at the end of its time."""
    return _lock_key(tag, f"lock:{name}")


def lock_state(tag: str, name: str) -> str:
    """HASH fences and figures of contention. Expires a day after the end of the last holder's time."""
    return _lock_key(tag, f"state:{name}")


def lock_queue(tag: str, name: str) -> str:
    """ZSET waiter by the microsecond of its arrival. Goes when it holds or leaves. Expires a minute later."""
    return _lock_key(tag, f"queue:{name}")


def lock_beats(tag: str, name: str) -> str:
    """ZSET waiter by the microsecond until which it counts as alive. Goes with its place. Expires as that."""
    return _lock_key(tag, f"beats:{name}")


def lock_wake(tag: str, token: str) -> str:
    """LIST of at most one token that wakes one waiter; it says "look". Expires after seconds."""
    return _lock_key(tag, f"wake:{token}")


def lock_held(tag: str) -> str:
    """ZSET key of a lock by the millisecond its time ends. Goes on release, or a day after that end."""
    return _lock_key(tag, "held")


# Semaphores. The entity is a bucket, for semaphores by name. (services/semaphores)


def semaphore_holders(tag: str, name: str) -> str:
    """ZSET permit by the microsecond its lease ends. Goes on release or after that end. Expires after a month."""
    return _key("semaphores", tag, f"holders:{name}")


def semaphore_heavy(tag: str, name: str) -> str:
    """ZSET permit by its weight, if that is above 1. Goes with the holder. Expires after a month."""
    return _key("semaphores", tag, f"heavy:{name}")


def semaphore_since(tag: str, name: str) -> str:
    """ZSET permit by the microsecond it was granted. Goes with the holder. Expires after a month."""
    return _key("semaphores", tag, f"since:{name}")


def semaphore_queue(tag: str, name: str) -> str:
    """ZSET waiter by the microsecond of its arrival. Goes when it holds, leaves or dies. Expires after a minute."""
    return _key("semaphores", tag, f"queue:{name}")


def semaphore_beats(tag: str, name: str) -> str:
    """ZSET waiter by the microsecond until which it counts as alive. Goes with its place. Expires after a minute."""
    return _key("semaphores", tag, f"beats:{name}")


def semaphore_wake(tag: str, permit: str) -> str:
    """LIST of at most one token that wakes one waiter; it says "look". Expires after seconds."""
    return _key("semaphores", tag, f"wake:{permit}")


def semaphore_ended(tag: str, permit: str) -> str:
    """STRING, the call that ended a permit, for one that is sent again. Expires after half a minute."""
    return _key("semaphores", tag, f"ended:{permit}")


def semaphore_stats(tag: str, name: str) -> str:
    """HASH declared limit and figures of contention. Expires a month after the last use."""
    return _key("semaphores", tag, f"stats:{name}")


def semaphore_limits(tag: str) -> str:
    """HASH name -> limit that was set by hand. An entry goes when it is reset."""
    return _key("semaphores", tag, "limits")


def semaphore_names(tag: str) -> str:
    """ZSET name by the day of its last use. An entry goes a month after, unless its limit was set by hand."""
    return _key("semaphores", tag, "names")


# Fenced values. The entity is the value. (services/fences)


def fenced_value(name: str) -> str:
    """STRING, what was written last. Expires after its ttl, if it has one; else goes when it is deleted."""
    return _key("fences", name, "value")


def fenced_value_fence(name: str) -> str:
    """STRING, the fence of the last write, 19 digits. Expires a week after the value has gone."""
    return _key("fences", name, "fence")


# Chats. The entity is a bucket of chats, so that one script can look at several. (services/chat)


def chat(tag: str, chat_id: str) -> str:
    """HASH, what the chat is and how far it has come. Goes a year after the chat, so that no sequence restarts."""
    return _key("chats", tag, f"chat:{chat_id}")


def chat_messages(tag: str, chat_id: str) -> str:
    """STREAM <seq>-0 -> message. Goes by the chat's limits of number, age and bytes, or with the chat."""
    return _key("chats", tag, f"messages:{chat_id}")


def chat_members(tag: str, chat_id: str) -> str:
    """HASH person -> role, since when, what he may see. An entry goes when he leaves."""
    return _key("chats", tag, f"members:{chat_id}")


def chat_reads(tag: str, chat_id: str) -> str:
    """ZSET person by the seq up to which he has read. An entry goes when he leaves."""
    return _key("chats", tag, f"reads:{chat_id}")


def chat_mentions(tag: str, chat_id: str) -> str:
    """ZSET per person (prefix of him: ends in "/"): seqs that mention him, unread. Goes when read."""
    return _key("chats", tag, f"mentions:{chat_id}")


def chat_own(tag: str, chat_id: str) -> str:
    """ZSET per person (prefix of him: ends in "/"): seqs that he said after what he has read. Goes when read."""
    return _key("chats", tag, f"own:{chat_id}")


def chat_sent(tag: str, chat_id: str) -> str:
    """HASH per part of the history (prefix: ends in "/"): digest of sender and client id -> seq. Goes with it."""
    return _key("chats", tag, f"sent:{chat_id}")


def chat_deleted(tag: str, chat_id: str) -> str:
    """ZSET words of a deleted message (seq, digest, sent at) by seq. Goes with the history that it was in."""
    return _key("chats", tag, f"deleted:{chat_id}")


def chat_calls(tag: str, chat_id: str) -> str:
    """STRING per call (prefix of it: ends in "/"), what was answered, if it asks again. Expires after a minute."""
    return _key("chats", tag, f"calls:{chat_id}")


def chat_rate(tag: str, chat_id: str) -> str:
    """STRING per person (prefix of him: ends in "/"), when he may speak again. Expires then."""
    return _key("chats", tag, f"rate:{chat_id}")


def chat_blocked(tag: str, chat_id: str) -> str:
    """HASH person who may not come back -> when he was blocked. An entry goes when that is taken back."""
    return _key("chats", tag, f"blocked:{chat_id}")


def chat_names(tag: str) -> str:
    """ZSET chat id by the millisecond of its last message. An entry goes with the chat."""
    return _key("chats", tag, "names")


# Inboxes: in which chats a person may be. Hints, which the chats confirm. (services/chat)


def inbox_chats(tag: str, person: str) -> str:
    """ZSET chat id by the millisecond of the hint. An entry goes when the chat has denied it for a day."""
    return _key("inboxes", tag, f"chats:{person}")


def inbox_past(tag: str, person: str) -> str:
    """ZSET chat id by when he left it, for the erasure of what he said. An entry goes with that."""
    return _key("inboxes", tag, f"past:{person}")


# Mailboxes. The entity is a bucket, for mailboxes by name. (services/mailboxes)


def mailbox(tag: str, name: str) -> str:
    """HASH counters, and when it was last pulled. Expires a year after the last use."""
    return _key("mailboxes", tag, f"mailbox:{name}")


def mailbox_messages(tag: str, name: str) -> str:
    """STREAM <id>-0 -> message. An entry goes when it is acknowledged or dropped. Expires with the mailbox."""
    return _key("mailboxes", tag, f"messages:{name}")


def mailbox_handed(tag: str, name: str) -> str:
    """ZSET "<id> <pull>" of what was handed out, by id. An entry goes with its message. Expires with the mailbox."""
    return _key("mailboxes", tag, f"handed:{name}")


def mailbox_dropped(tag: str, name: str) -> str:
    """ZSET id of a message that was dropped, by id. The newest 1,000 stay. Expires after a month."""
    return _key("mailboxes", tag, f"dropped:{name}")


def mailbox_sent(tag: str, name: str) -> str:
    """HASH per day (prefix of ":" and the day): what was pushed, who sent what went. Expires after two days."""
    return _key("mailboxes", tag, f"sent:{name}")


def mailbox_blocked(tag: str, name: str) -> str:
    """HASH sender whose mail is refused -> since when. An entry goes when that is taken back."""
    return _key("mailboxes", tag, f"blocked:{name}")


def mailbox_names(tag: str) -> str:
    """ZSET name by the day of its last use. An entry goes a year after."""
    return _key("mailboxes", tag, "names")
