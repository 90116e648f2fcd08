"""The mailboxes of the HTTP API."""
