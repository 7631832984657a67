"""Metrics: counters in plain integers, and their text for Prometheus."""
