"""Code that all pages of the control room share."""
