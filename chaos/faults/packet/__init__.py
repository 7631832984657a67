"""Faults of the packets between hosts."""
