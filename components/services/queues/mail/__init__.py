"""E-mail that is sent by tasks."""
