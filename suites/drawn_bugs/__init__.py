"""Bugs of the broker that a machine draws: small slips of the source, by the seed of a drawing.

`drawing` needs cosmic-ray; a broker with a drawn bug does not (`bug`, `changed_module`).
"""
