"""Histories that somebody else recorded as tables, judged without a cluster."""
