"""Mail through the queue: accepted by EmailBackend, sent by deliver() through the real backend."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from smtplib import SMTPAuthenticationError, SMTPDataError, SMTPRecipientsRefused
from typing import Any

import django
import pytest
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMessage, EmailMultiAlternatives, send_mail, send_mass_mail
from django.core.mail.backends import smtp
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.log import AdminEmailHandler
from pytest_django import Settings
from redis import Redis

from components.exceptions import BodyTooLarge, NotSerializable, RedisUnavailable
from components.kit.compat import task_backends
from components.services.queues import TaskInfo, TaskQueue
from components.services.queues.mail.backend import (
    ATTEMPTS,
    EmailBackend,
    MailNotSent,
    backoff,
    deliver,
    real_backend,
)
from components.services.queues.mail.checks import check_mail
from components.services.queues.worker.choice import QueueChoice
from components.services.queues.worker.tasks import TaskWorker
from tests.support.queues import come_due

HAS_MAILERS = django.VERSION >= (6, 1)
TASKS = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"

QUEUE = "components.mail.EmailBackend"
MEMORY = "django.core.mail.backends.locmem.EmailBackend"
SMTP = "django.core.mail.backends.smtp.EmailBackend"


LOGGER = "components.services.queues.mail.backend"


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


def deliver_to_the_end(redis: Redis) -> None:
    """Let a worker try again and again what it cannot send, until it gives up."""
    for _attempt in range(ATTEMPTS):
        deliver_all()
        if waiting_again := [task.id for task in TaskQueue().tasks("default", "delayed")]:
            come_due(redis, *waiting_again)


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


def test_many_messages_go_in_one_round_trip_and_leave_in_their_order(redis: Redis) -> None:
    assert connection().send_messages([]) == 0
    send_mass_mail([(f"Mail {number}", "", None, ["b@example.com"]) for number in range(1)])
    redis.config_resetstat()

    accepted = send_mass_mail([(f"Mail {number}", "", None, ["b@example.com"]) for number in range(30)])
    calls = sum(stats["calls"] for name, stats in redis.info("commandstats").items() if "evalsha" in name)

    assert accepted == 30
    assert calls == 1
    assert len(waiting()) == 31
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


# What cannot be carried


def bad() -> EmailMessage:
    message = hello(subject="Bad")
    message.tags = {"a", "set"}  # type: ignore[attr-defined]
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


# fail_silently


def test_silently_the_good_messages_are_accepted_and_what_is_wrong_is_logged(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    send_through_queue(settings, MEMORY, silent=True)
    caplog.set_level(logging.INFO, logger=LOGGER)

    assert connection(silent=True).send_messages([hello(), bad(), hello()]) == 2
    assert [record.levelno for record in caplog.records] == [logging.INFO]
    settings.CACHES = nowhere()
    assert connection(silent=True).send_messages([hello(), hello()]) == 0
    send_through_queue(settings, MEMORY)
    with pytest.raises(RedisUnavailable):
        hello().send()


# The worker


def test_a_mail_that_cannot_be_sent_is_tried_again_and_then_a_dead_task_and_an_error_in_the_log(
    settings: Settings, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    send_through_queue(settings, SMTP, host="127.0.0.1", port=closed_port())
    hello(headers={"Message-ID": "<1@example.com>"}).send()
    deliver_to_the_end(redis)
    (dead,) = TaskQueue().tasks("default", "dead")
    said = [message for name, _level, message in caplog.record_tuples if name == LOGGER]

    assert {error.exception_class_path for error in dead.errors} == {"builtins.ConnectionRefusedError"}
    assert len(dead.errors) == len(said) == ATTEMPTS
    assert "<1@example.com> to 1 recipients" in said[0]
    assert waiting() == []


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        (SMTPRecipientsRefused({"b@example.com": (550, b"no such user")}), True),
        (SMTPRecipientsRefused({"b@example.com": (550, b"no"), "c@example.com": (450, b"later")}), False),
        (SMTPRecipientsRefused({}), False),
        (SMTPDataError(554, b"spam"), True),
        (SMTPDataError(500, b"no"), True),
        (SMTPDataError(499, b"later"), False),
        (SMTPDataError(451, b"later"), False),
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


# Reports of failed mail


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


@pytest.mark.usefixtures("admins")
def test_the_report_of_a_failed_mail_does_not_become_the_next_failed_mail(
    settings: Settings, redis: Redis
) -> None:
    send_through_queue(settings, SMTP, host="127.0.0.1", port=closed_port())
    hello().send()
    deliver_to_the_end(redis)

    assert [task.args[0]["fields"]["subject"] for task in TaskQueue().tasks("default", "dead")] == ["Hello"]
    assert waiting() == []


def test_mail_of_a_newer_release_waits_for_one_and_older_mail_without_an_entry_is_sent() -> None:
    hello().send()
    (task,) = waiting()
    deliver.func(task.args[0])
    assert len(mail.outbox) == 1
    newer = deliver.enqueue({**task.args[0], "v": 2})
    deliver_all()

    found = TaskQueue().get(newer.id)
    assert found is not None
    assert found.state != "dead"
    assert found.worker_ids == ()


# Settings


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
def test_a_task_backend_or_queue_that_does_not_exist_is_found_by_the_check(
    settings: Settings, setting: str
) -> None:
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

    def test_without_mailers_the_older_settings_say_how_mail_is_sent_and_warn_of_nothing(
        settings: Settings,
    ) -> None:
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


def nowhere() -> dict[str, Any]:
    """CACHES with a Redis that does not answer."""
    return {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "unix:///nowhere/redis.sock"}}


def closed_port() -> int:
    """A port of loopback at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
