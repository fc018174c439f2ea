"""The status of a TranslationDeployment: conditions, numbers, and the events of their changes."""
