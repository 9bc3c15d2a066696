"""Seeded simulators: small models of a serving engine whose runs are drawn and measured.

Pure functions from numbers and a seed to a run, each beside its closed form: a formula states an
average, a simulator shows one run of what it is the average of. The same seed gives the same run on
every machine. Nothing here draws, and nothing keeps a state.
"""
