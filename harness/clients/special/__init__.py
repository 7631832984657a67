"""Clients that send what no client library sends, and clients that judge answers."""
