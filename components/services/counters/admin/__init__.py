"""The Counters pages of the control room."""
