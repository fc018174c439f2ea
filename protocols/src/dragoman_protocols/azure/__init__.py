"""Azure AI Translator, versions 3.0 and 2026-06-06."""
