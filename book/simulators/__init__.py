"""Seeded simulators: small models of a serving engine whose runs are drawn and measured.

Each has a closed form, in `book.formulas`, that it is checked against. The same seed gives the same run.
"""
