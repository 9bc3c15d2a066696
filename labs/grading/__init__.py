"""The instructor's side: running submissions safely and grading what comes out."""
