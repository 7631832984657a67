"""Logs and replicas: complete offsets, equal content, correct indexes, enough copies."""
