"""The e-mail backend that sends mail by tasks: EMAIL_BACKEND = "components.mail.EmailBackend"."""

from components.services.queues.mail.backend import EmailBackend

__all__ = ["EmailBackend"]
