"""The Rate limits page of the control room."""
