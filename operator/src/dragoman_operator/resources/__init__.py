"""The objects that a TranslationDeployment consists of."""
