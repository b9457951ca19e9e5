"""The store of records: content-addressed JSON files and an index that can be rebuilt from them."""

from greenlane.ledger.store import InvalidRecord, Ledger, parse

__all__ = ["InvalidRecord", "Ledger", "parse"]
