"""Guarantees about applications: what they promise of their outputs."""
