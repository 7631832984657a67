"""Deletion: retention and administrators remove records neither too early nor too late."""
