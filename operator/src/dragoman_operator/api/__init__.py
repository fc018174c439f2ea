"""The TranslationDeployment as typed values; the CRD is generated from these."""
