"""For all tests: what collecting them made stays to the end, and garbage collections pass it by."""

import gc

gc.disable()  # until all are collected: nothing of that is garbage


def pytest_collection_finish() -> None:
    """The tests begin."""
    gc.freeze()
    gc.enable()
