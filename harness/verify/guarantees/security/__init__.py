"""Access rights and quotas."""
