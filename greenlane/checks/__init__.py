"""Static checks: a module per rule family, over all lanes at once."""
