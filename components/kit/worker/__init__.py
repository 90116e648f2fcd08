"""The loop of workers, and its reactions to signals, limits and outages."""
