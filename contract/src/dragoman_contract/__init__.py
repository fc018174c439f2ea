"""What the operator, the engine pod and the router agree on: names, ports, labels, languages.

This package imports none of the others and holds no behaviour beyond parsing its own values.
"""
