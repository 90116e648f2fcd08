"""Code that the management commands share."""
