"""Rows that others measured, whole tables of them: facts with their source and licence.

A table is a folder of CSV files here, one a card, engine, version and format. Lines that begin with `#`
come first: what the rows are, `# source: ...`, `# how: ...`, then `# name = value` for what all rows share.
"""
