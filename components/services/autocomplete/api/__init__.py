"""The address books of the HTTP API."""
