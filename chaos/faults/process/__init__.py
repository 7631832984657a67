"""Faults that end, stop or slow processes."""
