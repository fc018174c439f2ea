"""DeepL's API v2, with its glossaries of v2 and v3."""
