"""The keys of mailboxes. The entity is a bucket of mailboxes, so that one index lists all of a bucket."""

from components.kit.keyspace import Key, SharedKey, bucket, stem


class MailboxKeys:
    """The keys of the mailbox *name*, named as in the scripts."""

    def __init__(self, name: str) -> None:
        self._stem, self._end = stem("mailboxes", bucket(name)), f":{name}"

    mailbox = Key("HASH counters, and the time of the last pull. Expires a year after the last use.")
    messages = Key(
        "STREAM <id>-0 -> message. An entry goes when it is acknowledged or dropped. Expires as the mailbox."
    )
    handed = Key(
        'ZSET "<id> <call> <pull>" by id, of messages handed out and not acknowledged. Expires as the mailbox.'
    )
    dropped = Key("ZSET id by id, of the last 1,000 dropped messages. Expires a month after the last drop.")
    sent = Key(
        'HASH pushes, and senders of removed messages; one per day (prefix of it: ends in ":" and the day). '
        "Expires after two days. If it reaches 10,000 fields, or two for each message of the limit, it replaces "
        "that of the previous day."
    )
    blocked = Key(
        "HASH blocked sender -> millisecond of the blocking; 10,000 at most. A field goes when the sender is "
        "unblocked."
    )
    names = SharedKey(
        "ZSET name by the day of its last use, for a bucket. An entry goes after a year. Expires with the last one."
    )


def index(tag: str) -> str:
    """ZSET name by the day of its last use, of a bucket. An entry goes after a year. Expires with the last."""
    return f"{stem('mailboxes', tag)}names"
