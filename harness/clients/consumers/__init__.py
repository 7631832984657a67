"""Clients that read: assigned consumers, group members and final readers."""
