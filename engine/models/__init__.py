"""Model files: where they are, what is in them, and what the core is told about them."""
