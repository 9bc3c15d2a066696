"""The numbers: accelerators, models and published measurements, each with its source.

    >>> from book import catalog
    >>> catalog.accelerator("h100_sxm").ridge("bf16")
    295.34...
    >>> catalog.model("llama3.1-8b").parameters
    8030261248

The facts live in the YAML files beside this module and nowhere else. They are read once, when
first asked for, and checked as they are read: a `CatalogError` says what to mend. Everything that
comes out is in SI base units (bytes, bytes/s, FLOP/s, seconds), and every peak is dense.
"""

from book.catalog.architecture import Attention, Experts, Model
from book.catalog.dtypes import RATES, Dtype, dtype, effective_bits, effective_itemsize, itemsize
from book.catalog.find_card import accelerator, accelerators, card_called, roof_peak
from book.catalog.find_model import linear_layers, model, models
from book.catalog.find_series import published, published_kinds, series
from book.catalog.hardware import Accelerator, NoLink, Unit, UnsupportedDtype
from book.catalog.measurements import Series
from book.catalog.names import UnknownName
from book.catalog.rows import CatalogError, Source
from book.catalog.storages import storage, storages

__all__ = [
    "Accelerator",
    "Attention",
    "CatalogError",
    "Dtype",
    "Experts",
    "Model",
    "NoLink",
    "RATES",
    "Series",
    "Source",
    "Unit",
    "UnknownName",
    "UnsupportedDtype",
    "accelerator",
    "accelerators",
    "card_called",
    "dtype",
    "effective_bits",
    "effective_itemsize",
    "itemsize",
    "linear_layers",
    "model",
    "models",
    "published",
    "published_kinds",
    "roof_peak",
    "series",
    "storage",
    "storages",
]
