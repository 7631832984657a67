"""Transactions and pipelines over them: atomic, isolated, fenced, each record exactly once."""
