"""What the management commands share."""
