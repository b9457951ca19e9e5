"""One module per command of `python -m engine`: its arguments and what it does."""
