"""Keys, rates and quotas."""
