"""Server-side apply: who owns which field, and how applied objects merge.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/ and
sigs.k8s.io/structured-merge-diff, whose rules these modules follow over plain sets of paths.
"""
