"""The router: one address for all TranslationDeployments, by language pair and by health, and nothing is lost."""
