"""Faults that cut or degrade links."""
