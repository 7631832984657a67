"""Transactional clients, and the checks that their transactions have ended."""
