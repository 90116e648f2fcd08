"""The table of formats: each record is stored where the table says, with the marker that it names."""

from __future__ import annotations

import json
import re
from pathlib import Path

from django.core.mail import EmailMessage
from redis import Redis

from components.services.autocomplete import AddressBook
from components.services.chat import Chat
from components.services.mailboxes import Mailbox
from components.services.queues import Consumer, Progress
from components.services.queues.mail.messages import to_json
from components.services.rows import Loader, RowCache, Shape, Stored, name_and_key
from docs.keyspace import SCHEMA, Key
from docs.tables import DOCS
from tests.support.geo import city, import_networks
from tests.support.logs import fill, stream
from tests.support.queues import claim, failed, hand_in, push_many, succeeded

PAGE = (DOCS / "reference" / "keys.md").read_text(encoding="utf-8")
ROWS = {
    record: (where, form)
    for record, where, form, _newer in re.findall(
        r"^\| ([\w ]+) \| (.+?) \| (.+?) \| (.*?) ?\|$",
        PAGE.partition("\n## Formats\n")[2].partition("\n### ")[0],
        re.M,
    )
    if record != "record"
}
#: What begins, or is part of, the stored bytes of the records whose marker the table names.
MARKERS = {
    "task": rb"1 \d",
    "run of a task": rb"1 [a-z]",
    "errors of a task": rb'\{"v": 1, ',
    "progress of a task": rb'\{"v": 1, ',
    "result of a task": rb"1 .*\n.*\n1 .*\n",
    "heartbeat of a worker": rb'\{"v": ?1, ',
    "chat message": rb"[tje]",
    "changes of a chat message": rb"\d+:\d+.*:thello again",
    "mailbox message": rb"[tj]",
    "entries of an address book": rb"3$",
    "cached row": rb"\[\d+, ?\d+, ?\"\w+\"",
    "chunk of logs": rb"\x28\xb5\x2f\xfd",
    "table of addresses": rb'\{.*"format": 1[,}]',
}


def key_of(record: str) -> Key:
    """Return the first key of the schema that the table names for *record*."""
    found = re.match(r"`([\w-]+)(?::<\w+>)?`.* of (\w+)$", ROWS[record][0])
    assert found, ROWS[record][0]
    name, service = found.groups()
    return next(
        key for key in SCHEMA.values() if key.service == service and key.pattern.split(":")[3] == name
    )


def stored(redis: Redis, record: str) -> list[bytes]:
    """Return what is stored under the keys of *record*; of a hash the values, of a stream the bodies."""
    key = key_of(record)
    pattern = re.sub(r"\{.*?\}|<\w+>", "*", key.pattern.removeprefix("<prefix>"))
    values = list[bytes]()
    for name in redis.keys(f"*{pattern}"):
        match key.doc.split()[0]:
            case "HASH":
                values += [value for _, value in sorted(redis.hgetall(name).items())]
            case "STREAM":
                values += [fields[b"b" if b"b" in fields else b"body"] for _, fields in redis.xrange(name)]
            case _:
                values.append(redis.get(name))
    return values


def test_the_table_names_each_marker_that_is_checked_here_and_no_other() -> None:
    marked = {record for record, (_, form) in ROWS.items() if re.search(r"[Mm]arkers?\b", form)}
    without = {record for record in marked if re.search("No marker", ROWS[record][1])}

    assert marked - without == MARKERS.keys() | {"mail"}


def test_each_record_is_stored_where_the_table_says_with_its_marker(redis: Redis, tmp_path: Path) -> None:
    consumer = Consumer()
    push_many(4)
    good, bad, running = claim(consumer, 3)
    hand_in(consumer, succeeded(good), failed(bad))
    consumer.progress(running, Progress(1))
    consumer.renew(["default"], [running])
    chat = Chat.create("joe", members=["jack"], text="hello")
    chat.edit("joe", 2, "hello again")
    Mailbox("jack").push("jill", "hello")
    AddressBook("players").add("Jack", id=1)
    cache, loader = RowCache("items", Shape([("stock", "integer")])), Loader()
    cache.schedule_many({name_and_key("items:1")[1]: 60})
    loader.store(loader.claim().claims, {"items:1": Stored(True, cache.shape.encode("items:1", [3]))})
    fill(stream(), 1)
    import_networks(tmp_path, {"1.0.0.0/24": city("US")})

    unmarked = {
        record
        for record, marker in MARKERS.items()
        if not any(re.match(marker, value, re.S) for value in stored(redis, record))
    }

    assert unmarked == set()


def test_a_mail_has_the_marker_that_the_table_names() -> None:
    assert f"`{json.dumps(to_json(EmailMessage('Hello')))[1:7]}`" in ROWS["mail"][1]
