"""Numbers in circulation, checked: each chapter's in a file of its own, `ch05_kv_cache.py`.

>>> from book import claims
>>> claims.table("05")            # for a page
>>> claims.claims()[0].judged()   # "right" or "wrong", as the numbers give it now
"""

from book.claims.claim import Claim
from book.claims.ledger import claims, table

__all__ = ["Claim", "claims", "table"]
