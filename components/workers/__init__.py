"""What every process of workers is made of: its loop, signals, limits and outages, and what their commands share."""
