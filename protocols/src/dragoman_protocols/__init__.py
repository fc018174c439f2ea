"""The translation APIs as values: requests, answers, codes, errors, glossaries. Pure; the pod and the router use it."""
