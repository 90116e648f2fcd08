"""The demo's mail server, which one of the buttons breaks for a minute."""

from __future__ import annotations

from collections.abc import Sequence
from smtplib import SMTPServerDisconnected
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.filebased import EmailBackend

from .shows import is_mail_broken


class BreakableBackend(EmailBackend):
    """Django's backend that writes mails into files, unless the tour has broken it."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> Any:
        if is_mail_broken():
            raise SMTPServerDisconnected("The tour has broken the mail server of the demo for a minute.")
        return super().send_messages(email_messages)
