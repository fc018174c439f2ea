"""The core: from texts and a pair of languages to translations that were checked. It knows neither HTTP nor vLLM."""
