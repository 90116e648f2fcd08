"""The worker that counts logs."""
