"""Mail through the queue: EmailBackend accepts it, JSON carries all of it, and deliver() sends it."""

import json
import logging
import random
import socket
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from email.headerregistry import Address
from email.message import EmailMessage as StandardMessage
from email.message import MIMEPart
from email.mime.base import MIMEBase
from email.mime.image import MIMEImage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from smtplib import SMTPAuthenticationError, SMTPDataError, SMTPRecipientsRefused, SMTPServerDisconnected
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import django
import pytest
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMessage, EmailMultiAlternatives, send_mail, send_mass_mail
from django.core.mail.backends import smtp
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.log import AdminEmailHandler
from django.utils.translation import gettext_lazy, override
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import BodyTooLarge, NotSerializable, RedisUnavailable
from components.kit.compat import task_backends
from components.services.queues import TaskInfo, TaskQueue
from components.services.queues.mail import connections
from components.services.queues.mail.backend import (
    ATTEMPTS,
    EmailBackend,
    MailNotSent,
    backoff,
    deliver,
    real_backend,
)
from components.services.queues.mail.checks import check_mail
from components.services.queues.mail.messages import from_json, message_id, to_json
from components.services.queues.worker.choice import QueueChoice
from components.services.queues.worker.tasks import TaskWorker
from components.testing import redis_at
from tests.support.monitoring import sent_to
from tests.support.queues import come_due

HAS_MAILERS = django.VERSION >= (6, 1)
TASKS = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"

QUEUE = "components.mail.EmailBackend"
MEMORY = "django.core.mail.backends.locmem.EmailBackend"
SMTP = "django.core.mail.backends.smtp.EmailBackend"


def send_through_queue(settings: Settings, real: str, *, silent: bool = False, **options: Any) -> None:
    """Set the project up as docs/mail.md says, with *real* as the backend that sends."""
    if HAS_MAILERS:
        queue = {"mailer": "real"} | ({"fail_silently": True} if silent else {})
        settings.MAILERS = {
            "default": {"BACKEND": QUEUE, "OPTIONS": queue},
            "real": {"BACKEND": real, "OPTIONS": options},
        }
    else:
        settings.EMAIL_BACKEND = QUEUE
        settings.COMPONENTS = {**settings.COMPONENTS, "MAIL_BACKEND": real}
        for name, value in options.items():
            setattr(settings, "EMAIL_FILE_PATH" if name == "file_path" else f"EMAIL_{name.upper()}", value)


@pytest.fixture(autouse=True)
def through_queue(settings: Settings, redis: Redis) -> None:
    """Mail goes through Redis, and then into mail.outbox."""
    send_through_queue(settings, MEMORY)


def waiting(queue: str = "default", alias: str = "default") -> list[TaskInfo]:
    return TaskQueue(alias).tasks(queue, "ready")


def deliver_all() -> None:
    """Let a worker empty the queue, one mail after the other."""
    TaskWorker(task_backends["default"], QueueChoice(["default"]), concurrency=1, burst=True).run()


def hello(**options: Any) -> EmailMessage:
    return EmailMessage(**{"subject": "Hello", "body": "World", "to": ["b@example.com"]} | options)


def test_mail_waits_in_the_queue_until_a_worker_sends_it() -> None:
    accepted = send_mail("Hello", "World", "a@example.com", ["b@example.com"], html_message="<p>World</p>")

    assert accepted == 1
    assert mail.outbox == []

    deliver_all()
    (sent,) = mail.outbox

    assert isinstance(sent, EmailMultiAlternatives)
    assert (sent.subject, sent.body) == ("Hello", "World")
    assert (sent.from_email, sent.to) == ("a@example.com", ["b@example.com"])
    assert sent.alternatives == [("<p>World</p>", "text/html")]


def test_many_messages_go_in_one_round_trip_and_leave_in_their_order(redis_server: EmbeddedServer) -> None:
    assert connection().send_messages([]) == 0
    send_mail("First", "", None, ["b@example.com"])

    with sent_to(redis_server) as commands:
        mails = [(f"Mail {number}", "", None, ["b@example.com"]) for number in range(30)]
        assert send_mass_mail(mails) == 30

    assert commands == ["EVALSHA"]
    deliver_all()
    assert [message.subject for message in mail.outbox[1:]] == [f"Mail {number}" for number in range(30)]


@pytest.mark.parametrize("recipients", [{"to": []}, {"to": [""]}, {"to": [], "cc": [], "bcc": []}])
def test_a_message_to_nobody_is_not_accepted(recipients: Any) -> None:
    accepted = connection().send_messages([hello(**recipients), hello(bcc=["c@example.com"])])

    assert accepted == 1
    assert len(waiting()) == 1


def test_the_settings_name_the_queue_and_the_task_backend(settings: Settings) -> None:
    settings.TASKS = {**settings.TASKS, "post": {**settings.TASKS["default"], "QUEUES": ["out"]}}
    settings.COMPONENTS = {**settings.COMPONENTS, "MAIL_TASKS": "post", "MAIL_QUEUE": "out"}
    hello().send()

    assert len(waiting("out", "post")) == 1
    assert waiting() == []


def test_mail_goes_through_the_task_backend_of_another_maker_too(settings: Settings) -> None:
    settings.TASKS = {"default": {"BACKEND": f"{TASKS}.backends.immediate.ImmediateBackend"}}
    send_mass_mail([("One", "", None, ["b@example.com"]), ("Two", "", None, ["b@example.com"])])

    assert [message.subject for message in mail.outbox] == ["One", "Two"]


def bad() -> EmailMessage:
    message = hello(subject="Bad")
    message.tags = [object()]  # type: ignore[attr-defined]
    return message


def large() -> EmailMessage:
    return hello(subject="Bad", attachments=[("invoice.pdf", b"x" * 65_536, "application/pdf")])


@pytest.mark.parametrize(
    ("make", "error", "part"),
    [
        (bad, NotSerializable, "Mail 'Bad' <.+>: tags"),
        (large, BodyTooLarge, r"Mail 'Bad' <.+>: attachments\[0\] 'invoice.pdf'"),
        (lambda: hello(subject="Bad\nBcc: everybody@example.com"), ValueError, "newlines|linefeed"),
    ],
)
def test_one_message_that_cannot_be_carried_keeps_all_others_out_of_the_queue(
    settings: Settings, make: Callable[[], EmailMessage], error: type[Exception], part: str
) -> None:
    with pytest.raises(error, match=part):
        connection().send_messages([hello(), make()])
    assert waiting() == []
    settings.TASKS = {"default": {**settings.TASKS["default"], "OPTIONS": {"max_body": 1_000_000}}}
    if make is large:
        assert make().send() == 1


@pytest.mark.parametrize("given", [{"username": "a"}, {"password": "b"}])
def test_a_user_name_and_a_password_are_refused_rather_than_stored(given: dict[str, str]) -> None:
    with pytest.raises(TypeError):
        EmailBackend(**given)


def test_what_no_queue_carries_is_sent_at_once(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    send_through_queue(settings, MEMORY, silent=True)
    caplog.set_level(logging.INFO)

    assert connection(silent=True).send_messages([hello(), bad(), large()]) == 3
    assert (len(waiting()), len(mail.outbox)) == (1, 2)
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.WARNING]
    with redis_at("unix:///nowhere/redis.sock"):
        assert connection(silent=True).send_messages([hello(), hello()]) == 2
        assert len(mail.outbox) == 4
        send_through_queue(settings, MEMORY)
        with pytest.raises(RedisUnavailable):
            hello().send()


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        (SMTPRecipientsRefused({"b@example.com": (550, b"no such user")}), True),
        (SMTPRecipientsRefused({"b@example.com": (550, b"no"), "c@example.com": (450, b"later")}), False),
        (SMTPRecipientsRefused({}), False),
        (SMTPDataError(500, b"no"), True),
        (SMTPDataError(499, b"later"), False),
        (SMTPAuthenticationError(535, b"bad password"), False),
        (ConnectionRefusedError(), False),
    ],
)
def test_a_mail_that_was_refused_for_good_is_not_tried_again(error: Exception, is_final: bool) -> None:
    hello().send()
    (task,) = waiting()

    assert (backoff(error, deliver.get_result(task.id)) is None) == is_final


class Silent(smtp.EmailBackend):
    """Raises no error, and sends nothing, when there is no server."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"fail_silently": True})


def test_a_backend_that_says_it_sent_nothing_has_failed(settings: Settings) -> None:
    send_through_queue(settings, f"{__name__}.Silent", host="127.0.0.1", port=closed_port())
    hello().send()
    (task,) = waiting()

    with pytest.raises(MailNotSent):
        deliver.func(*task.args)


def test_a_silent_mail_server_is_given_up(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.services.queues.mail.backend._PATIENCE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        send_through_queue(settings, SMTP, host="127.0.0.1", port=server.getsockname()[1])
        assert [found.id for found in check_mail()] == ["components.W014"]
        hello().send()
        (task,) = waiting()

        with pytest.raises(SMTPServerDisconnected, match="timed out"):
            deliver.func(*task.args)
    send_through_queue(settings, SMTP, host="localhost", timeout=5)
    assert check_mail() == []


class Post(StreamRequestHandler):
    """A mail server that accepts everything."""

    def handle(self) -> None:
        self.server.opened += 1  # type: ignore[attr-defined]
        self.wfile.write(b"220 ready\r\n")
        while (word := self.rfile.readline().strip().upper()) not in (b"", b"QUIT"):
            self.wfile.write(b"354 go on\r\n" if word == b"DATA" else b"250 ok\r\n")
            if word == b"DATA":
                while self.rfile.readline() != b".\r\n":
                    pass
                self.wfile.write(b"250 ok\r\n")
                if self.server.hangs_up:  # type: ignore[attr-defined]
                    return


@pytest.mark.parametrize(("hangs_up", "opened"), [(False, 1), (True, 3)])
def test_the_next_mail_goes_over_the_same_connection(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, hangs_up: bool, opened: int
) -> None:
    with ThreadingTCPServer(("127.0.0.1", 0), Post) as server:
        server.opened, server.hangs_up = 0, hangs_up  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        send_through_queue(settings, SMTP, host="127.0.0.1", port=server.server_address[1])
        for _ in range(3):
            hello().send()
        deliver_all()
        connections._idle[:] = [(0.0, each) for _since, each in connections._idle]
        connections._close_idle()
        server.shutdown()

    assert (server.opened, waiting(), connections._idle) == (opened, [], [])  # type: ignore[attr-defined]


@pytest.fixture
def admins(settings: Settings) -> Iterator[None]:
    """Errors are mailed to the admins, as Django does by itself when DEBUG is off."""
    settings.ADMINS = ["boss@example.com"] if django.VERSION >= (6, 0) else [("Boss", "boss@example.com")]
    handler = AdminEmailHandler()
    handler.setLevel(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(handler)
    yield
    root.removeHandler(handler)


def test_mail_of_a_newer_release_waits_for_one_and_older_mail_without_an_entry_is_sent() -> None:
    hello().send()
    (task,) = waiting()
    deliver.func(task.args[0])
    assert len(mail.outbox) == 1
    newer = deliver.enqueue({**task.args[0], "v": 3})
    deliver_all()

    found = TaskQueue().get(newer.id)
    assert found.state != "dead"
    assert found.worker_ids == ()


def test_the_queue_cannot_be_its_own_real_backend(settings: Settings) -> None:
    assert check_mail() == []
    hello().send()
    (task,) = waiting()
    if HAS_MAILERS:
        settings.MAILERS = {"default": {"BACKEND": QUEUE, "OPTIONS": {"mailer": "default"}}}
    else:
        settings.COMPONENTS = {**settings.COMPONENTS, "MAIL_BACKEND": QUEUE}

    with pytest.raises(ImproperlyConfigured):
        deliver.func(*task.args)
    assert [message.id for message in check_mail()] == ["components.E004"]


@pytest.mark.parametrize("setting", ["MAIL_TASKS", "MAIL_QUEUE"])
def test_a_missing_task_backend_or_queue_is_found_by_the_check(settings: Settings, setting: str) -> None:
    settings.TASKS = {"default": {**settings.TASKS["default"], "QUEUES": ["default"]}}
    settings.COMPONENTS = {**settings.COMPONENTS, setting: "post"}

    assert [(found.id, "post" in found.msg) for found in check_mail()] == [("components.E004", True)]


if HAS_MAILERS:

    def test_a_mailer_that_is_not_named_is_found_at_once_and_by_the_check(settings: Settings) -> None:
        settings.MAILERS = {"default": {"BACKEND": QUEUE}}

        with pytest.raises(ImproperlyConfigured, match="OPTIONS"):
            hello().send()
        assert "smtp" in check_mail()[0].msg

    def test_a_mailer_that_does_not_exist_is_found_by_the_check(settings: Settings) -> None:
        settings.MAILERS = {"default": {"BACKEND": QUEUE, "OPTIONS": {"mailer": "smpt"}}}

        assert "'smpt' is not configured" in check_mail()[0].msg

    def test_each_queued_entry_has_a_mailer_of_its_own(settings: Settings) -> None:
        settings.MAILERS["bulk"] = {"BACKEND": QUEUE, "OPTIONS": {"mailer": "cheap"}}
        settings.MAILERS["cheap"] = {"BACKEND": MEMORY}
        hello().send()
        hello().send(using="bulk")
        deliver_all()

        assert sorted(message.sent_using for message in mail.outbox) == ["cheap", "real"]  # type: ignore[attr-defined]

    def test_without_mailers_the_older_settings_say_how_mail_is_sent(settings: Settings) -> None:
        del settings.MAILERS
        backend = real_backend(None)

        assert isinstance(backend, smtp.EmailBackend)
        assert (backend.host, backend.port) == ("localhost", 25)
        assert check_mail() == []
        settings.COMPONENTS = {**settings.COMPONENTS, "MAIL_BACKEND": MEMORY}
        EmailBackend().send_messages([hello()])
        deliver_all()
        assert len(mail.outbox) == 1

else:

    def test_a_backend_that_does_not_exist_is_found_by_the_check(settings: Settings) -> None:
        settings.COMPONENTS = {**settings.COMPONENTS, "MAIL_BACKEND": "nowhere.EmailBackend"}

        assert "nowhere" in check_mail()[0].msg

    def test_mail_that_does_not_go_through_the_queue_is_not_checked(settings: Settings) -> None:
        settings.EMAIL_BACKEND = MEMORY
        settings.COMPONENTS = {**settings.COMPONENTS, "MAIL_TASKS": "nowhere"}

        assert check_mail() == []


def connection(*, silent: bool = False) -> BaseEmailBackend:
    """The backend as Django makes it for the project's mail."""
    return mail.mailers["default"] if HAS_MAILERS else mail.get_connection(fail_silently=silent)


def closed_port() -> int:
    """A port of loopback at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.usefixtures("admins")
def test_a_mail_that_cannot_be_sent_is_tried_again_and_its_report_is_not_the_next_that_fails(
    settings: Settings, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    send_through_queue(settings, SMTP, host="127.0.0.1", port=closed_port())
    hello(headers={"Message-ID": "<1@example.com>"}).send()
    for _attempt in range(ATTEMPTS):
        deliver_all()
        if again := [task.id for task in TaskQueue().tasks("default", "delayed")]:
            come_due(redis, *again)
    (dead,) = TaskQueue().tasks("default", "dead")
    said = [message for message in caplog.messages if "<1@example.com> to 1 recipients failed" in message]

    assert dead.args[0]["fields"]["subject"] == "Hello"
    assert {error.exception_class_path for error in dead.errors} == {"builtins.ConnectionRefusedError"}
    assert len(dead.errors) == len(said) == ATTEMPTS
    assert waiting() == []


WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
LINES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
TEXTS = st.lists(LINES, max_size=5).map("\n".join)
NAMES = st.from_regex(r"[A-Za-z]{1,20}", fullmatch=True)
ADDRESSES = st.lists(st.emails() | st.builds("{} <{}>".format, NAMES, st.emails()), max_size=3)
TEXT_FILES = st.tuples(st.none() | WORDS, TEXTS, st.sampled_from(["text/plain", "text/csv"]))
BINARY_FILES = st.tuples(
    st.none() | WORDS, st.binary(max_size=200), st.sampled_from(["image/png", "application/pdf"])
)
ATTACHMENTS = st.lists(TEXT_FILES | BINARY_FILES, max_size=3)
HEADERS = st.dictionaries(st.sampled_from(["X-Tag", "List-Id", "Sender"]), LINES.map(ascii))
FIXED = {"Date": "Fri, 21 Nov 2026 08:00:00 +0000", "Message-ID": "<1@example.com>"}


@st.composite
def messages(draw: st.DrawFn) -> EmailMessage:
    message = draw(st.sampled_from([EmailMessage, EmailMultiAlternatives]))(
        subject=draw(LINES),
        body=draw(TEXTS),
        from_email=draw(st.none() | st.emails()),
        to=draw(ADDRESSES),
        cc=draw(ADDRESSES),
        bcc=draw(ADDRESSES),
        reply_to=draw(ADDRESSES),
        headers={**FIXED, **draw(HEADERS)},
        attachments=draw(ATTACHMENTS),
    )
    if isinstance(message, EmailMultiAlternatives) and draw(st.booleans()):
        message.attach_alternative(draw(TEXTS), "text/html")
        message.attach_alternative(draw(st.binary(max_size=50)), "application/octet-stream")
    if draw(st.booleans()):
        message.content_subtype = "html"
    if draw(st.booleans()):
        message.encoding = "utf-8"
    return message


def carry(message: EmailMessage) -> Any:
    return from_json(json.loads(json.dumps(to_json(message))))


def as_bytes(message: EmailMessage) -> bytes:
    """As it goes over the wire, with boundaries that do not depend on chance."""
    random.seed(1)
    return message.message().as_bytes()


def fields(message: EmailMessage) -> dict[str, Any]:
    return {name: value for name, value in vars(message).items() if name not in ("connection", "_connection")}


def with_(**attributes: Any) -> EmailMessage:
    message = hello()
    vars(message).update(attributes)
    return message


@pytest.mark.slow
@given(messages())
def test_every_field_comes_out_as_it_went_in(sent: EmailMessage) -> None:
    received = carry(sent)

    assert type(received) is type(sent)
    assert fields(received) == fields(sent)
    assert received.recipients() == sent.recipients()
    assert as_bytes(received) == as_bytes(sent)  # over the wire, as it would have gone without the queue


def picture() -> MIMEBase:
    part = MIMEImage(bytes(range(256)), "png")
    part.add_header("Content-ID", "<logo>")
    part.add_header("Content-Disposition", "inline", filename=("utf-8", "", "Größe.png"))
    return part


def calendar() -> MIMEBase:
    part = MIMEText("BEGIN:VCALENDAR\nSUMMARY:Grüße\nFrom here\nEND:VCALENDAR\n", "calendar", "utf-8")
    part.set_param("method", "REQUEST")
    return part


def nested() -> MIMEBase:
    part = MIMEMultipart("related")
    part.attach(calendar())
    part.attach(picture())
    return part


def modern() -> MIMEPart:
    part = MIMEPart()
    part.set_content(b"\x00\xff" * 100, maintype="application", subtype="pgp-signature", filename="Größe.asc")
    return part


PARTS = [picture, calendar, nested]
if django.VERSION >= (6, 0):
    PARTS.append(modern)


@pytest.mark.parametrize("make", PARTS)
def test_a_finished_part_is_carried_byte_by_byte(make: Any) -> None:
    sent = hello(headers=FIXED)
    sent.attachments = [make()]

    received = carry(sent)

    assert isinstance(received.attachments[0], MIMEPart if make is modern else MIMEBase)
    assert received.attachments[0].as_bytes() == sent.attachments[0].as_bytes()
    assert as_bytes(received) == as_bytes(sent)


def test_without_a_message_id_each_sending_gets_one_that_stays() -> None:
    message = hello()
    document, again = to_json(message), to_json(message)
    first, second, other = (from_json(each).message() for each in (document, document, again))

    assert first["Message-ID"] == second["Message-ID"] == message_id(document["fields"]["extra_headers"])
    assert first["Date"] == second["Date"]
    assert other["Message-ID"] != first["Message-ID"]
    assert message.extra_headers == {}
    nested = to_json(hello(attachments=[("forwarded.eml", hello(), "message/rfc822")]))
    assert as_bytes(from_json(nested)) == as_bytes(from_json(nested))
    for name in ("Message-ID", "message-id", "MESSAGE-ID"):
        kept = carry(hello(headers={name: "<sale-1@example.com>"}))
        assert kept.message().get_all("Message-ID") == ["<sale-1@example.com>"]


def test_attributes_that_other_backends_look_at_are_carried_and_translations_made() -> None:
    day = gettext_lazy("Monday")
    sent = hello(to=[Address("Jack", "jack", "example.com")], subject=day, body=day, headers={"X-Day": day})
    sent.tags, sent.metadata = ["welcome"], {"order": {"id": 7, "raw": b"\xff"}}  # type: ignore[attr-defined]
    with override("de"):  # the language of the sender
        received = carry(sent)

    assert (received.tags, received.metadata) == (["welcome"], {"order": {"id": 7, "raw": b"\xff"}})
    assert to_json(sent)["v"] == 1  # which earlier releases read
    assert received.to == ["Jack <jack@example.com>"]
    assert [received.subject, received.body, received.extra_headers["X-Day"]] == ["Montag"] * 3


class Unset:
    """Stands for a value that was not given."""


class Status:
    """What the backend has answered."""

    def __init__(self) -> None:
        self.recipients: dict[str, str] = {}


class ServiceMail(EmailMultiAlternatives):
    """A mail as packages for mail services have it."""

    template_id, log = "spring", logging.getLogger("mail")

    def __init__(self, *args: Any, **options: Any) -> None:
        self.esp_extra, self.send_at = Unset, options.pop("send_at", Unset)
        self.status = Status()
        super().__init__(*args, **options)


def test_what_packages_for_mail_services_have_is_carried_or_left_behind() -> None:
    given = {
        "send_at": datetime(2026, 3, 4, 5, 6, tzinfo=ZoneInfo("Asia/Kathmandu")),
        "metadata": {"price": Decimal("1.10"), "day": date(2026, 3, 4), "id": UUID(int=7)},
        "tags": {"new", "sale"},
    }
    level: Any = 5 if django.VERSION < (6, 0) else "5"  # newer ones refuse numbers
    sent = ServiceMail("Hello", to=["b@example.com"], headers={"X-Level": level, "X-None": None})
    vars(sent).update(given)
    received = carry(sent)

    assert to_json(sent)["v"] == 2
    assert {name: vars(received).get(name) for name in given} == given
    assert not {"esp_extra", "status"} & vars(received).keys()
    assert received.extra_headers["X-Level"] == "5"
    assert (received.template_id, received.extra_headers["X-None"]) == ("spring", None)
    sent.status.recipients["b@example.com"] = "sent"  # it was sent before
    with pytest.raises(NotSerializable, match=r"status is .* delete it before sending"):
        to_json(sent)


def forwarded() -> StandardMessage:
    content = StandardMessage()
    content["Subject"] = "Hello"
    content.set_content("From Günther\n")
    return content


@pytest.mark.parametrize(
    "content", [hello(headers=FIXED), forwarded(), "Subject: x\n\ny", b"Subject: x\n\ny"]
)
def test_a_mail_can_be_attached_to_a_mail(content: Any) -> None:
    sent = hello(headers=FIXED, attachments=[("forwarded.eml", content, "message/rfc822")])

    assert as_bytes(carry(sent)) == as_bytes(sent)


class Signed(EmailMessage):
    def message(self, **options: Any) -> Any:
        return super().message(**options)


class Unwritable:
    """Not JSON."""


def unwritable() -> MIMEBase:
    part = MIMEBase("application", "x-odd")
    part.set_payload(Unwritable())
    return part


def ambiguous() -> MIMEBase:
    part = MIMEMultipart(boundary="same")
    part.attach(MIMEText("one\n--same\ntwo"))
    return part


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        (Signed("Hello", to=["b@example.com"]), r"Signed .*\(message\)"),
        *(
            (with_(merge_data=[value]), r"merge_data\[0\]")
            for value in (Unwritable(), {1: "a"}, {"$bytes": "no bytes"})
        ),
        (with_(attachments=[("a.txt", "a", "text/plain"), unwritable()]), r"attachments\[1\]"),
        (with_(attachments=[ambiguous()]), r"attachments\[0\]"),
    ],
)
def test_what_a_worker_could_not_repeat_is_refused_by_its_place(message: EmailMessage, wrong: str) -> None:
    with pytest.raises(NotSerializable, match=rf"Mail 'Hello' <.+>: {wrong}"):
        to_json(message)
