"""Measurements: the ladder from multiprocessing queues to the pod, and the pod beside its peers.

Nothing of the product imports this; the arms are what the product is measured against.
"""
