"""Adapters of other engines: single scripts that a gate copies into the lane; they import nothing of greenlane."""
