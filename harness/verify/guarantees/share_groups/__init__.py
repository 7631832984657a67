"""Share groups: locks, acknowledgements, deliveries (KIP-932)."""
