"""How the book draws and writes: palette, numbers as text, tables, figures and what they are made of."""
