"""GitHub: client, check runs, the sticky comment, workflow rendering."""
