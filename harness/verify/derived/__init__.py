"""Small tables that checks share, derived from the small evidence once for all engines."""
