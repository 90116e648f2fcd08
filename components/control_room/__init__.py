"""What all pages of the control room share."""
