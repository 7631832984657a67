"""Validation: the checks that decide which evidence may be believed. Missing or damaged evidence
makes a verdict UNKNOWN."""
