"""What a notebook depends on, found by reading; and how it travels with all of it in one cell."""
