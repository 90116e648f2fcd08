"""The Address books pages of the control room, and admin fields that complete."""
