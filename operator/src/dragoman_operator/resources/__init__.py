"""The children of a TranslationDeployment."""
