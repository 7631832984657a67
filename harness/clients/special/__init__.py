"""Clients that send invalid or unusual requests, and clients that check responses."""
