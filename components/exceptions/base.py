"""The base of all errors."""


class ComponentsError(Exception):
    """Base of every error that this app raises. Do not raise directly."""
