"""Histories recorded as tables by other tools, judged without a cluster."""
