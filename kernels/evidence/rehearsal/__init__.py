"""The timed rung on a card that isn't there: what it does is tried, and nothing that it says is evidence."""
