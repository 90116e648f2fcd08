"""Tokens that the caller of acquire() chose. All others are made by components.kit.holders.new_token()."""

from __future__ import annotations


class GivenToken(bytes):
    """
    A token that the caller chose, so that several acquisitions may use the same: *asker* tells them apart.

    It is bytes, since redis-py's classes keep it and compare it.
    """

    asker: bytes

    @classmethod
    def of(cls, token: bytes, asker: bytes) -> GivenToken:
        """Return *token* as the acquisition that is called *asker* uses it."""
        made = cls(token)
        made.asker = asker
        return made


def asker_of(token: bytes) -> bytes:
    """Return what names the acquisition with this token: the token itself, unless the caller chose it."""
    return token.asker if isinstance(token, GivenToken) else token
