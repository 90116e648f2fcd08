"""
An EMAIL_BACKEND that sends all mail of a project through the task queue.

send_messages() turns each message into a task (messages.py) and returns. In a worker, deliver() rebuilds the message
and passes it to the real backend: COMPONENTS["MAIL_BACKEND"] or, in a project with MAILERS (Django 6.1), the entry
that "mailer" in the OPTIONS names. If a worker dies after sending a message and before reporting that, the message is
sent again, under the same Message-ID.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from smtplib import SMTPAuthenticationError, SMTPRecipientsRefused, SMTPResponseException
from typing import Any

import django
from django.conf import settings
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.module_loading import import_string

from components.conf import conf
from components.exceptions import BodyTooLarge, ComponentsError, MailNotSent
from components.kit.compat import Task, TaskResult
from components.services.queues.backend import RedisBackend
from components.services.queues.mail.connections import connected
from components.services.queues.mail.messages import from_json, largest_part, message_id, to_json
from components.services.queues.policy import exponential, task

_PATIENCE = 60  # seconds for a mail server that accepts a connection and says nothing
ATTEMPTS = 12  # in about four hours, because a mail server may be down for long

logger = logging.getLogger(__name__)


class EmailBackend(BaseEmailBackend):
    """
    An e-mail backend that writes mail into the queue.

    In a project with MAILERS, *mailer* is the entry that really sends. With *fail_silently*, mail that the queue
    refuses or cannot carry, such as a large report of an error, is sent at once, with a warning in the log.
    """

    def __init__(
        self,
        fail_silently: bool = False,
        *,
        alias: str | None = None,
        mailer: str | None = None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> None:
        if username or password:
            raise TypeError(
                "A user name and a password (auth_user, auth_password) are not written into the queue: "
                "give them to the backend that really sends, in the settings."
            )
        if alias and not mailer:
            raise ImproperlyConfigured(
                f"MAILERS[{alias!r}] puts mail into the queue; its OPTIONS must name the entry that really "
                'sends it, such as {"mailer": "smtp"}.'
            )
        super().__init__(alias=alias, **kwargs)
        self.alias = alias
        self.mailer = mailer
        self.fail_silently = fail_silently

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """
        Enqueue all messages that have a recipient, in one round trip, and return how many were accepted.

        Raises NotSerializable or BodyTooLarge, which name the message and its part, and RedisUnavailable. Nothing is
        enqueued then.
        """
        messages = [message for message in email_messages if message.recipients()]
        reports = [message for message in messages if deliver.module_path in str(message.subject)]
        # Through the queue, a report would fail like the mail, and that failure would be reported again.
        accepted = self._send_now(reports) if reports else 0
        messages = [message for message in messages if message not in reports]
        for batch in [[message] for message in messages] if self.fail_silently else [messages]:
            try:
                accepted += self._enqueue([to_json(message) for message in batch])
            except ComponentsError as error:
                if not self.fail_silently:
                    raise
                # A handler that mails this warning sends it at once, since it names deliver().
                logger.warning("%s: not queued, so it is sent at once: %s", deliver.module_path, error)
                accepted += self._send_now(batch)
        return accepted

    def _enqueue(self, documents: list[dict[str, Any]]) -> int:
        queued: Any = delivery()
        if self.fail_silently:  # as for the report of an error, which a rollback must not hold back
            queued = replace(queued, on_commit=False)
        backend = queued.get_backend()
        try:
            if isinstance(backend, RedisBackend):
                backend.enqueue_many(queued, [((document, self.alias), {}) for document in documents])
            else:
                for document in documents:
                    queued.enqueue(document, self.alias)
        except BodyTooLarge as error:
            raise BodyTooLarge(f"{largest_part(documents)}. {error}") from error
        return len(documents)

    def _send_now(self, messages: list[EmailMessage]) -> int:
        """Send without the queue, and hide errors from the caller, such as a handler of log records."""
        try:
            return real_backend(self.alias).send_messages(messages) or 0
        except Exception as error:  # noqa: BLE001
            logger.info("A mail that the queue does not carry was not sent: %s", error)
            return 0


def real_backend(alias: str | None) -> BaseEmailBackend:
    """
    Return the backend that sends the mail accepted by the MAILERS entry *alias* or, without an alias, by
    EMAIL_BACKEND.

    Raises ImproperlyConfigured if no such backend is configured, or if it is the queue again.
    """
    if django.VERSION >= (6, 1) and hasattr(settings, "MAILERS"):
        backend = mail.mailers[alias or "default"]
        if isinstance(backend, EmailBackend):
            backend = mail.mailers[str(backend.mailer)]
    else:
        kind = import_string(conf().mail_backend)
        # From Django 6.1 on, SMTP warns of a backend without any alias.
        backend = kind(alias=None) if django.VERSION >= (6, 1) else kind()
    if isinstance(backend, EmailBackend):
        raise ImproperlyConfigured(
            "The backend that should send mail from the queue would put it back into the queue. "
            'Name one that sends, in COMPONENTS["MAIL_BACKEND"] or, in a project with MAILERS, as "mailer" in the '
            "OPTIONS."
        )
    return backend


def backoff(error: BaseException, result: TaskResult[..., Any]) -> float | None:
    """Return seconds, or None if the mail server refused the mail permanently (a reply of 500 to 559, RFC 5321)."""
    codes = [error.smtp_code] if isinstance(error, SMTPResponseException) else []
    if isinstance(error, SMTPRecipientsRefused):
        codes = [code for code, _reply in error.recipients.values()]
    if codes and all(code >= 500 for code in codes) and not isinstance(error, SMTPAuthenticationError):
        return None
    return _longer(error, result)


_longer = exponential(15, longest=3_600)


@task(
    backend=conf().mail_tasks,
    queue_name=conf().mail_queue,
    max_attempts=ATTEMPTS,
    backoff=backoff,
    sensitive=True,  # a mail may hold a link that sets a password
)
def deliver(message: dict[str, Any], alias: str | None = None) -> str:
    """Send a mail that EmailBackend accepted. Return its Message-ID. Raises MailNotSent, or the backend's error."""
    built = from_json(message)
    identity, recipients = message_id(built.extra_headers), len(built.recipients())
    try:
        backend: Any = real_backend(alias)
        if getattr(backend, "timeout", _PATIENCE) is None:  # EMAIL_TIMEOUT, which is None unless it is set
            backend.timeout = _PATIENCE
        with connected(backend) as open_one:
            if open_one.send_messages([built]) == 0:
                raise MailNotSent("The backend sent nothing and raised no error. Check MAIL_BACKEND.")
    except Exception as error:
        # _report() recognises records about deliveries by this path.
        logger.warning("%s: %s to %d recipients failed: %s", deliver.module_path, identity, recipients, error)
        raise
    logger.info("Sent %s to %d recipients", identity, recipients)
    return identity


def delivery() -> Task[..., str]:
    """Return the task deliver() with the backend and queue that the settings name now. Raises InvalidTask."""
    return deliver.using(backend=conf().mail_tasks, queue_name=conf().mail_queue)
