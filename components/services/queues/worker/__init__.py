"""The workers that run tasks, and the poller of delayed ones."""
