"""GitHub: the sticky comment, the check run, artifacts of strangers' runs, and the rendered workflows."""
