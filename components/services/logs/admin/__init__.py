"""The Logs and Traffic pages of the control room."""
