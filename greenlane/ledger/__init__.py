"""The store of records: content-addressed JSON files and an index that can be rebuilt."""
