"""A project as type checkers see it: they refuse the lines that end in "# refused", and accept all others."""
