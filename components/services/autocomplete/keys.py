"""Keys of autocomplete: address books, recent contacts."""

from __future__ import annotations

from components.kit.keyspace import _key

# Address books. The entity is a book: one script changes or reads all that it is. (services/autocomplete)


def book(name: str) -> str:
    """HASH version, count, when it was loaded, by which rules names were folded. Goes with the book."""
    return _key("books", name, "book")


def book_entries(name: str) -> str:
    """ZSET search key, \\1, id: from the beginning and from each word on. A member goes with its entry."""
    return _key("books", name, "entries")


def book_rows(name: str) -> str:
    """HASH part of a digest of the id -> the rows of entries that fall there. A row goes with its entry."""
    return _key("books", name, "rows")


def book_ranks(name: str) -> str:
    """ZSET id by the logarithm of its selections, as they decay. A member goes with its entry."""
    return _key("books", name, "ranks")


def book_selected(name: str) -> str:
    """ZSET the members of entries that were ever selected. A member goes with its entry."""
    return _key("books", name, "selected")


def book_tops(name: str) -> str:
    """HASH prefix that many of the selected match -> the best of them. A field goes when they are few again."""
    return _key("books", name, "tops")


def book_loading(name: str) -> str:
    """HASH token and count of the load that runs beside the book. Goes with its end. Expires after an hour."""
    return _key("books", name, "loading")


def book_next_entries(name: str) -> str:
    """ZSET as entries, of the load that runs. Becomes these, or goes. Expires with the load."""
    return _key("books", name, "next-entries")


def book_next_rows(name: str) -> str:
    """HASH as rows, of the load that runs. Becomes these, or goes. Expires with the load."""
    return _key("books", name, "next-rows")


def book_next_selected(name: str) -> str:
    """ZSET as selected, of the load that runs. Becomes these, or goes. Expires with the load."""
    return _key("books", name, "next-selected")


def book_changed(name: str) -> str:
    """SET ids that changed while the load runs, which it must not change back. Goes with it. Expires with it."""
    return _key("books", name, "changed")


def book_usage(name: str) -> str:
    """HASH minute of the hour -> the searches of that minute, and the slowest. Expires after an hour."""
    return _key("books", name, "usage")


def book_call(name: str, call: str) -> str:
    """STRING what a call was answered, if it asks again. Expires after a minute."""
    return _key("books", name, f"call:{call}")


def book_names(tag: str) -> str:
    """ZSET names of all books, with equal scores. One goes when its book is removed."""
    return _key("books", tag, "names")


# Recent contacts. The entity is a bucket of persons. (services/autocomplete)


def contacts(tag: str, person: str) -> str:
    """ZSET contact by the microsecond of its last touch. The newest stay. Expires a year after the last use."""
    return _key("contacts", tag, f"contacts:{person}")


def contacts_labels(tag: str, person: str) -> str:
    """HASH contact -> the call that touched it, \\1, its label or nothing. Goes with it. Expires with them."""
    return _key("contacts", tag, f"labels:{person}")


def contacts_call(tag: str, call: str) -> str:
    """STRING what a call was answered, if it asks again. Expires after a minute."""
    return _key("contacts", tag, f"call:{call}")
