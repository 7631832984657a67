"""What keeps secrets and strangers apart from the rest."""
