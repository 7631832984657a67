"""What a share group promises: locks, acknowledgements, deliveries (KIP-932)."""
