"""Measurements of others against this book's floors: what lies below one, and why.

    python -m book.against rows.csv

reads a table of your own and says the same of it. `operations` has the floors, row by row; `verdicts` what a
time below a floor can mean; `table_in` reads a file; `digest` has 4.6 million rows, binned.
"""
