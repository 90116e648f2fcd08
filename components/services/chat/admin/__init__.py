"""The Chats pages of the control room."""
