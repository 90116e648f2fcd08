"""The loop that workers run in, and what it heeds: signals, limits, outages."""
