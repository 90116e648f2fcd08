"""
Texts that a visitor may see, in their language.

Translations need the apps to be loaded. A process that only sets up the settings has not, so it gets English texts in
place of an AppRegistryNotReady that would hide what happened.
"""

from django.apps import apps
from django.utils import formats, translation


def gettext_noop(message: str) -> str:
    """Mark a text for translation. Django's function reads the settings, which may be what imports its caller."""
    return message


def gettext(message: str) -> str:
    """Return the text in the language of the visitor."""
    return translation.gettext(message) if apps.ready else message


def grouped(number: float) -> str:
    """Write a number with the separators of the language of the visitor: 1234567 as "1,234,567"."""
    return str(formats.number_format(number, force_grouping=True)) if apps.ready else f"{number:,}"


def counted(count: int, thing: str) -> str:
    """Return such as "1 name" or "2,000 names", in English."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
