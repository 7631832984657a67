"""Clients that commit, read and delete committed offsets outside of a consumer."""
