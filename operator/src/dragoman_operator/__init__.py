"""The Kubernetes operator: reconciles TranslationDeployments and reports their status."""
