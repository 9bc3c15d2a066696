"""Numbers in circulation, checked: the ledger in catalog/claims.yaml, recomputed.

>>> from book import claims
>>> claims.table("05")            # for a page
>>> claims.claims()[0].judged()   # "right" or "wrong", as the numbers give it now
"""

from book.claims import machines, measured, requests  # noqa: F401  (they fill the registry)
from book.claims.ledger import Claim, Expression, claims, table
from book.claims.registry import EXPRESSIONS

__all__ = ["EXPRESSIONS", "Claim", "Expression", "claims", "table"]
