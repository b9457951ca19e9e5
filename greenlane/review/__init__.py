"""Baseline, classification, claims and merge probe: from records to verdicts."""
