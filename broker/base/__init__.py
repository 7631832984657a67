"""What every part of the broker may use; imports nothing of ours."""
