"""The Kubernetes operator: keeps what runs in line with each TranslationDeployment, and says why it does not."""
