"""One record set for every reader."""
