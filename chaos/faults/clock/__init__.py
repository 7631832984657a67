"""Faults that set wall clocks."""
