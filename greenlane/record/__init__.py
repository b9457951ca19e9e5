"""The record: one immutable JSON document about what a lane did at one commit."""
