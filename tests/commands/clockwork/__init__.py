"""An app with a periodic task, for processes that have it in APPS."""
