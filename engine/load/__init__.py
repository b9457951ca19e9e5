"""Load for a running server: a small streaming client, arrival patterns, figures."""
