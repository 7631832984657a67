"""Small tables that checks share, computed from the small evidence once for all engines."""
