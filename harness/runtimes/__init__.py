"""Where nodes run."""
