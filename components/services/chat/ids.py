"""
Ids of chats, calls and messages, and names of persons.

The id of a chat is a UUID of version 7 (RFC 9562), or an id that a project chooses, such as "guild:7". It has no
slash, because it occurs in URLs, and in keys before a slash and the name of a person.
"""

import re
import secrets
from hashlib import sha256

from components.exceptions import InvalidName
from components.kit.validation import check_name

AN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", re.ASCII)


def is_id(text: object) -> bool:
    """Return whether a chat can have this id."""
    return isinstance(text, str) and AN_ID.fullmatch(text) is not None


def check_id(chat_id: object) -> str:
    """Return *chat_id* if it is valid. Raises InvalidName."""
    if isinstance(chat_id, str) and is_id(chat_id):
        return chat_id
    raise InvalidName(
        f"A chat cannot have the id {repr(chat_id)[:80]}: it must be 1 to 64 letters, digits and . _ : - of ASCII, "
        "and begin with a letter or a digit."
    )


def new_client_id() -> str:
    """Return an id for a message that came without one. It is short, because it is stored with the message."""
    return secrets.token_urlsafe(9)


def id_for(user: str, key: str) -> str:
    """Return an id for a chat that a repeated request with this key gets again, and no other request gets."""
    return sha256(f"{user}\0{key}".encode()).hexdigest()[:32]


def content_of(*asked: object) -> str:
    """Return a digest of what a call asks for, by which another call with the same client id is noticed."""
    return sha256(repr(asked).encode()).hexdigest()[:16]


def check_person(person: object) -> str:
    """Return *person* if it is a valid name. Raises InvalidName."""
    return check_name("person", person)


def check_actor(by: object) -> str:
    """Return the acting person as scripts expect them: "" for None, which is the system. Raises InvalidName."""
    return "" if by is None else check_person(by)
