"""Google Cloud Translation, v2."""
