"""The Locks pages of the control room."""
