"""`x-kubernetes-validations`: the CEL rules of custom resources.

Source: https://kubernetes.io/docs/reference/using-api/cel/
"""
