"""Runs gfx machine code on a CPU."""
