"""
The system check of mail that goes through the queue.

It is a separate module, because importing mail/backend.py reads the settings that are checked here.
"""

from importlib import import_module
from typing import Any

import django
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

from components.kit.compat import InvalidTask

_MODULE = "components.services.queues.mail.backend"


def check_mail(**kwargs: Any) -> list[CheckMessage]:
    """Report E004 if mail would get into the queue, but not out of it; W014 if sending it has no timeout."""
    found: list[CheckMessage] = []
    for alias in _queued():
        try:
            mail = import_module(_MODULE)
            mail.delivery()
            backend = mail.real_backend(alias)
        except (ImproperlyConfigured, ImportError, InvalidTask) as error:
            found.append(
                Error(f"Mail that goes through the queue cannot be sent: {error}", id="components.E004")
            )
            continue
        if getattr(backend, "timeout", 0) is None:
            said = "The backend that sends mail has no timeout: a mail server that never answers stops its caller."
            hint = (
                'Set EMAIL_TIMEOUT, or "timeout" in the OPTIONS of its entry in MAILERS, such as 30 seconds.'
            )
            found.append(Warning(said, hint=hint, id="components.W014"))
    return found


def _queued() -> list[str | None]:
    """Return the entries of MAILERS that put mail into the queue; None stands for EMAIL_BACKEND."""
    backends = ("components.mail.EmailBackend", f"{_MODULE}.EmailBackend")
    if django.VERSION >= (6, 1) and hasattr(settings, "MAILERS"):
        return [alias for alias, entry in settings.MAILERS.items() if entry.get("BACKEND") in backends]
    # Django 6.1 warns whenever this setting is read, even if the project has not set it.
    given = settings.is_overridden("EMAIL_BACKEND") and settings.EMAIL_BACKEND  # type: ignore[misc]
    return [None] if given in backends else []
