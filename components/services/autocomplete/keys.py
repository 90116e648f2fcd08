"""
The keys of autocomplete. The entity is an address book, since one script reads or changes all of it. For recent
contacts, the entity is a bucket of people.
"""

from components.kit.keyspace import Key, SharedKey, bucket, stem

#: The single entity of names(): one index lists all books.
ALL = "all"


class BookKeys:
    """The keys of the address book *name*, named as in the scripts."""

    def __init__(self, name: str) -> None:
        self._stem, self._end = stem("books", name), ""

    book = Key(
        "HASH version, count, time of the last load, version of the folding rules. Goes with the book."
    )
    entries = Key(
        "ZSET search key from its start or from a word on, \\x01, id. A member goes with its entry."
    )
    rows = Key(
        "HASH first digits of the digest of ids -> the rows of these entries. A row goes with its entry."
    )
    ranks = Key(
        "ZSET id by the logarithm of its decaying number of selections. A member goes with its entry."
    )
    selected = Key(
        "ZSET members as in *entries*, of entries that were ever selected. A member goes with its entry."
    )
    tops = Key(
        "HASH prefix that many selected entries match -> the best of them. A field goes when only few match."
    )
    loading = Key("HASH token and count of the running load. Goes when the load ends. Expires after an hour.")
    next_entries = Key(
        "ZSET as *entries*, of the running load. Replaces *entries*, or goes. Expires with the load."
    )
    next_rows = Key("HASH as *rows*, of the running load. Replaces *rows*, or goes. Expires with the load.")
    next_selected = Key(
        "ZSET as *selected*, of the running load. Replaces *selected*, or goes. Expires with the load."
    )
    changed = Key(
        "SET ids that changed during the load, which must not undo the changes. Goes with the load. Expires with "
        "it."
    )
    calls = Key(
        'STRING answer to a call, in case it is repeated; one per call (prefix of it: ends in ":" and the call). '
        "Expires after a minute."
    )


class ContactsKeys:
    """The keys of the recent contacts of a person, named as in the scripts."""

    def __init__(self, person: str) -> None:
        self._stem, self._end = stem("contacts", bucket(person)), f":{person}"

    contacts = Key(
        "ZSET contact by the microsecond of its last touch. The newest stay. Expires a year after the last use."
    )
    labels = Key(
        'HASH contact -> the call that touched it, \\x01, its label or "". A field goes with its contact. Expires '
        "with them."
    )
    calls = SharedKey(
        'STRING answer to a call, in case it is repeated; one per call (prefix of it: ends in ":" and the call). It '
        "is the bucket's. Expires after a minute."
    )


def names(tag: str) -> str:
    """ZSET names of all books, with equal scores. One goes when its book is removed."""
    return f"{stem('books', tag)}names"
