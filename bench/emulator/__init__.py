"""Figures of the emulator."""
