"""One file that says everything: `load` gives the expanded matrix or every mistake in it at once."""
