"""The Semaphores pages of the control room."""
