"""The pages of address books in the control room, and admin fields with completion."""
