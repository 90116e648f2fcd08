"""What the visitor's last purchase has set in motion, and how far that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_string
from email.header import decode_header, make_header
from email.message import Message
from pathlib import Path
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from components.exceptions import RedisUnavailable
from components.formatting import since
from components.services.queues import TaskInfo, TaskQueue
from project.market.trace import Note

from .middleware import TRACE

MOST_MAILS = 20


@dataclass(frozen=True)
class Line:
    """One thing that happened: what, where in Redis it is kept, and where the control room shows it."""

    title: str
    detail: str
    key: str = ""
    url: str = ""
    is_done: bool = True


@dataclass(frozen=True)
class Trace:
    """The lines of a purchase, in the order in which they happened."""

    lines: list[Line]

    @property
    def is_done(self) -> bool:
        return all(line.is_done for line in self.lines)

    @classmethod
    def of(cls, request: HttpRequest) -> Trace | None:
        """Return the trace of the visitor's last purchase; None if they have bought nothing."""
        notes: list[Note] = request.session.get(TRACE, [])
        if not notes:
            return None
        order = ["lock", "row", "task"]
        return cls(
            [
                line
                for each in sorted(notes, key=lambda note: order.index(note["what"]))
                for line in _lines(each)
            ]
        )


@dataclass(frozen=True)
class Mail:
    """A mail in the demo's folder."""

    id: str
    to: str
    subject: str
    text: str


def mails() -> list[Mail]:
    """Return the last mails, the newest first."""
    folder = settings.VAR / "mail"
    files = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return [_mail(message) for path in files[:MOST_MAILS] for message in _messages(path)][:MOST_MAILS]


def _lines(note: Note) -> Iterator[Line]:
    match note["what"]:
        case "lock":
            yield Line(
                f"A lock was held for {note['held']:.1f} ms",
                f"Taken after {note['waited']:.1f} ms, with the fencing token {note['fence']}. "
                "Nobody else could trade the item meanwhile.",
                note["key"],
                reverse("admin:components_lock_changelist"),
            )
        case "row":
            yield Line(
                f"The database row of “{note['name']}” was changed",
                f"It keeps the fencing token {note['fence']}, so a purchase with an older lock is refused "
                "from now on.",
                f"market_item {note['item']}",
                reverse("admin:market_item_changelist"),
            )
        case "task":
            yield _of_task(note)
            if note.get("mail"):
                yield _of_mail(note["mail"])


def _of_task(note: Note) -> Line:
    url = reverse("admin:components_queue_task") + "?" + urlencode({"alias": "default", "id": note["id"]})
    title = f"The task {note['name']} was put into the queue “{note['queue']}”"
    try:
        info = TaskQueue().get(note["id"])
    except RedisUnavailable:
        return Line(title, "Redis is away, so its state is not known now.", note["id"], url, is_done=False)
    if info is None:
        return Line(title, "It is done, and its result is no longer kept.", note["id"], url)
    return Line(title, _state(info), note["id"], url, is_done=info.state in ("delayed", "successful", "dead"))


def _state(info: TaskInfo) -> str:
    if info.state == "delayed":
        return "It is delayed: it will check that nothing was left undone, in case this process has died."
    if info.started_at is None or info.enqueued_at is None:
        return "It waits for a worker."
    waited = since(info.started_at, info.enqueued_at)
    if info.run_after:
        waited = f"{since(info.run_after, info.enqueued_at)}, as planned"
    if info.finished_at is None:
        return f"It waited {waited} and runs."
    end = "failed, and is kept among the dead tasks" if info.state == "dead" else "succeeded"
    return f"It waited {waited}, ran {since(info.finished_at, info.started_at)}, and {end}."


def _of_mail(message_id: str) -> Line:
    found = next((mail for mail in mails() if mail.id == message_id), None)
    url = reverse("tour:mails")
    if found is None:
        return Line("A mail to the seller", "It has not been sent yet.", message_id, url, is_done=False)
    return Line(f"A mail went to {found.to}", found.subject, message_id, url)


def _messages(path: Path) -> Iterator[Message]:
    """Yield the mails of a file, which Django's backend separates by a line of hyphens; the newest first."""
    parts = path.read_text(encoding="utf-8", errors="replace").split("-" * 79 + "\n")
    for part in reversed(parts):
        if part.strip():
            yield message_from_string(part)


def _mail(message: Message) -> Mail:
    payload = message.get_payload(decode=True)
    text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    return Mail(
        str(message["Message-ID"] or ""),
        str(message["To"] or ""),
        _decoded(message["Subject"]),
        text,
    )


def _decoded(header: str | None) -> str:
    return str(make_header(decode_header(header or "")))
