"""The pages of address books in the control room, and fields of the admin that complete."""
