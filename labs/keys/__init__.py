"""Hidden cases and answers. Masters and graders use them; a student's notebook never holds them."""
