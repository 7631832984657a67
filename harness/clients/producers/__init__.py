"""Clients that send records, one module for each client library."""
