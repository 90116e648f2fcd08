"""The Cached rows pages of the control room."""
