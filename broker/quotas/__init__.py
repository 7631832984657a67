"""Client quotas: limits by user, client id and address (KIP-13, 124, 219, 599, 612)."""
