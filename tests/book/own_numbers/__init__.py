"""The book's own numbers, as its chapters print them: statement, printed number, expression, verdict.

The same form as the numbers in circulation (`book.claims`), but nobody circulates these; they hold the
chapters' arithmetic, and `tests/book/test_own_numbers.py` computes them again.
"""
