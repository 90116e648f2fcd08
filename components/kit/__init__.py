"""The base of all services. Nothing in this package is for users of this app."""
