"""The endpoints of address books and recent contacts."""
