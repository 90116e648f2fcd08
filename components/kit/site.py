"""
Which site a process belongs to, in a word that says nothing else about it.

Two projects, or two environments of one, that share a Redis by mistake have different secret keys; all processes of
one site have the same. A digest of the key travels with the heartbeats of workers, so that strangers stand out.
"""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import salted_hmac


def known_sites() -> list[str]:
    """Return what this site is called with its SECRET_KEY, and with each of SECRET_KEY_FALLBACKS."""
    try:
        keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    except ImproperlyConfigured:  # a worker can do without one
        return [""]
    return [salted_hmac(__name__, "", secret=key, algorithm="sha256").hexdigest()[:12] for key in keys]
