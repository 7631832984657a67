"""What the lab runs on and does not bring itself, kept once a machine under the user's cache."""
