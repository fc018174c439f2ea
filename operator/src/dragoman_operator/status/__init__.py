"""The status of a TranslationDeployment."""
