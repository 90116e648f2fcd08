"""
Mail messages as JSON, and back.

Each field is stored, so the real backend gets the same message as it would in the sender's process. This includes
attributes that only some backends use (Anymail's tags), if they are JSON. Message-ID and Date are added if the sender
set none, so a mail that is sent twice is recognisably the same. A message that would change on its way is refused.
What each new message of its class has as well, such as a sentinel or a place for the backend's answer, is left
behind.
"""

import email.message
import email.policy
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from email.headerregistry import Address
from email.message import Message, MIMEPart
from email.mime.base import MIMEBase
from typing import Any
from uuid import UUID

from django.core.mail import EmailAlternative, EmailAttachment, EmailMessage, EmailMultiAlternatives
from django.utils.encoding import force_str
from django.utils.functional import Promise

from components.exceptions import NotSerializable, UnknownFormat

FORMAT = 2  # the first has no "$exact"

_CLASSES = {"EmailMessage": EmailMessage, "EmailMultiAlternatives": EmailMultiAlternatives}
#: Attributes of these classes that a message or a subclass may override.
_TUNABLE = ("content_subtype", "mixed_subtype", "alternative_subtype", "encoding")
#: Attributes about the path of the message to this backend; another backend sends it.
_LEFT_BEHIND = ("connection", "_connection")


def to_json(message: EmailMessage) -> dict[str, Any]:
    """
    Return the current state of *message* as JSON.

    Raises NotSerializable, which names the message and the part, and the errors that Django raises when it builds a
    message, such as ValueError for a line feed in a header.
    """
    headers = _stable_headers(message)
    where = _title(message.subject, headers)
    base = EmailMultiAlternatives if isinstance(message, EmailMultiAlternatives) else EmailMessage
    if changed := _overridden(type(message), base):
        raise NotSerializable(
            f"{where}: {type(message).__qualname__} builds its mail in its own way ({', '.join(changed)}), "
            f"which a worker cannot repeat; send a plain {base.__name__} with the finished content."
        )
    fields = {name: value for name, value in vars(message).items() if name not in _LEFT_BEHIND}
    own = (name for name in {*dir(type(message))} - {*dir(base)} if not name.startswith("_"))
    fields |= {
        name: value
        for name in (*_TUNABLE, *own)
        if (value := getattr(message, name, None)) != getattr(base, name, None) and not callable(value)
    }
    fields |= {"subject": str(message.subject), "from_email": str(message.from_email)}
    fields["extra_headers"] = {  # as Django does
        name: value if value is None else force_str(value) for name, value in headers.items()
    }
    carried = dict[str, Any]()
    for name, value in fields.items():
        try:
            carried[name] = _dump(value, f"{where}: {name}")
        except NotSerializable as error:
            if not _is_as_in_each(type(message), name, value):
                raise NotSerializable(
                    f"{error} If only the sender needs it, delete it before sending; or send a plain {base.__name__} "
                    "with the finished content."
                ) from None
    extra = [value for name, value in carried.items() if name not in vars(base())]
    return {"v": FORMAT if '"$exact"' in json.dumps(extra) else 1, "class": base.__name__, "fields": carried}


def _is_as_in_each(kind: type[EmailMessage], name: str, value: Any) -> bool:
    if value is getattr(kind, name, None):
        return True
    try:
        usual = vars(kind())[name]
        return value is usual or (type(value) is type(usual) and vars(value) == vars(usual))
    except (TypeError, KeyError):  # the class wants arguments or lacks the attribute, or the value has none
        return False


def from_json(document: dict[str, Any]) -> EmailMessage:
    """Return the message that to_json() wrote. Raises UnknownFormat if a newer release wrote it."""
    if document["v"] > FORMAT:
        raise UnknownFormat(f"A mail is stored in format {document['v']}, newer than {FORMAT}.")
    message = _CLASSES[document["class"]]()
    for name, value in document["fields"].items():
        setattr(message, name, _load(value))
    message.attachments = [_named(EmailAttachment, item) for item in message.attachments]
    if isinstance(message, EmailMultiAlternatives):
        message.alternatives = [_named(EmailAlternative, item) for item in message.alternatives]
    return message


def largest_part(documents: Iterable[dict[str, Any]]) -> str:
    """Return a sentence that names the largest mail in *documents*, and its largest part."""
    fields = max((document["fields"] for document in documents), key=_size)
    sizes = {name: _size(value) for name, value in fields.items() if name != "attachments"}
    for index, item in enumerate(fields["attachments"]):
        name = f" {item[0]!r}" if isinstance(item, list) else ""
        sizes[f"attachments[{index}]{name}"] = _size(item)
    part = max(sizes, key=sizes.__getitem__)
    title = _title(fields["subject"], fields["extra_headers"])
    return f"{title}: {part} is its largest part, {sizes[part]:,} bytes"


def message_id(headers: dict[str, Any]) -> str:
    """Return the Message-ID among the extra headers of a stored message."""
    return next(str(value) for name, value in headers.items() if name.lower() == "message-id")


def _title(subject: object, headers: dict[str, Any]) -> str:
    return f"Mail {str(subject)!r} {message_id(headers)}"


def _size(value: Any) -> int:
    return len(json.dumps(value))


def _stable_headers(message: EmailMessage) -> dict[str, Any]:
    built = message.message()
    given = {name.lower() for name in message.extra_headers}
    stable = {name: str(built[name]) for name in ("Date", "Message-ID") if name.lower() not in given}
    return stable | message.extra_headers


def _overridden(kind: type[EmailMessage], base: type[EmailMessage]) -> list[str]:
    """Return the methods of *base* that build the mail and that *kind* overrides."""
    private = {name for name in dir(base) if name.startswith("_") and not name.startswith("__")}
    methods = {"message", "recipients"} | private
    return sorted(name for name in methods if getattr(kind, name) is not getattr(base, name))


def _dump(value: Any, where: str) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Promise() | Address():  # a translation is made in the sender's language
            return str(value)
        case bytes() | bytearray() | memoryview():
            return {"$bytes": b64encode(value).decode()}
        case EmailMessage():
            return {"$message": to_json(value)}
        case Message():
            return _dump_part(value, where)
        case set() | frozenset():
            return {"$exact": ["set", [_dump(item, where) for item in sorted(value, key=repr)]]}
        case _ if type(value).__name__ in _EXACT and isinstance(value, _EXACT[type(value).__name__][0]):
            return {"$exact": [type(value).__name__, str(value)]}
        case list() | tuple():
            return [_dump(item, f"{where}[{index}]") for index, item in enumerate(value)]
        case dict() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _dump(item, f"{where}[{key!r}]") for key, item in value.items()}
    raise NotSerializable(
        f"{where} is {value!r:.80} ({type(value).__name__}), which cannot be stored in the queue."
    )


def _dump_part(part: Message, where: str) -> dict[str, str]:
    kind = type(part).__name__
    marker = "$part" if isinstance(part, MIMEPart) else "$mimebase"
    try:
        content = _flat(part)
        document = {marker: b64encode(content).decode()}
        same = _flat(_load(document)) == content
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise NotSerializable(f"{where} is a {kind} that cannot be written: {error}") from error
    if not same:
        raise NotSerializable(f"{where} is a {kind} that would change when stored and read again.")
    return document


def _flat(part: Message) -> bytes:
    policy = email.policy.default if isinstance(part, MIMEPart) else email.policy.compat32
    return Message.as_bytes(part, policy=policy)  # parts of Django 5.2 accept no policy


def _load(value: Any) -> Any:
    match value:
        case {"$bytes": content}:
            return b64decode(content)
        case {"$exact": [kind, text]}:
            return _EXACT[kind][1](_load(text))
        case {"$message": document}:
            return from_json(document)
        case {"$part": content}:
            return email.message_from_bytes(
                b64decode(content), email.message.EmailMessage, policy=email.policy.default
            )
        case {"$mimebase": content}:
            return email.message_from_bytes(b64decode(content), _ReadPart)
        case dict():
            return {key: _load(item) for key, item in value.items()}
        case list():
            return [_load(item) for item in value]
    return value


#: Values that backends such as Anymail take in their attributes, and how their text is read.
_EXACT: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "datetime": (datetime, datetime.fromisoformat),
    "date": (date, date.fromisoformat),
    "Decimal": (Decimal, Decimal),
    "UUID": (UUID, UUID),
    "set": (set, set),
}


class _ReadPart(MIMEBase):
    """A part that a parser can create, and that Django accepts as an attachment."""

    def __init__(self, policy: email.policy.Policy = email.policy.compat32) -> None:
        Message.__init__(self, policy)


def _named(kind: Any, item: Any) -> Any:
    return kind(*item) if isinstance(item, list) else item
