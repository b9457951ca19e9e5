"""Planning and running lanes."""
