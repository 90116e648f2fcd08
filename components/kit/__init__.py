"""What every service stands on. Nothing in here is for users of this app."""
