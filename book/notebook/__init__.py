"""What a chapter shows of its own making: derivations in SymPy, and the source of what was run."""
