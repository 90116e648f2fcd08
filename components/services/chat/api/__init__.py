"""The chats of the HTTP API."""
