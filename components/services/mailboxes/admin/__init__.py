"""The Mailboxes pages of the control room."""
