"""What moves on a page: the live widget, the explorer with its views, self-checks."""
