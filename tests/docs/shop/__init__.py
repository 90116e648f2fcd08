"""The project that the examples of README and docs speak of: its settings, its models, and what is already there."""
