"""The same verdicts where every part is a container."""
