"""The Queues pages of the control room."""
