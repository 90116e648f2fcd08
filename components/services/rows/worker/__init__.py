"""The daemon that refreshes cached rows."""
