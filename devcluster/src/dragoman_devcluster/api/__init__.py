"""The embedded Kubernetes API: small, honest, and enough for kubectl, Helm, kopf and `kubernetes.aio`.

Alone: `python -m dragoman_devcluster.api --port 6443 --dir DIR` serves https://127.0.0.1:6443 until it is
interrupted, with everything it keeps under DIR/api, and writes DIR/kubeconfig (TLS, bearer token) before it
listens. `kubectl --kubeconfig DIR/kubeconfig get ns` works then; `/readyz` answers `ok` without a token.

The bare ASGI application: `app.create_app(Store(directory), token=None)`.

The node writes containers' output to DIR/logs/NAMESPACE/POD/CONTAINER.log; `kubectl logs` reads it there.
Pods are deleted as a kubelet expects: DELETE marks a pod that has a node, DELETE with gracePeriodSeconds 0
removes it. Controllers (replicas, endpoints, garbage, namespaces, scheduling) are clients, not part of this.

What it leaves out, against a kube-apiserver of the same version: it has one user and no access reviews; it has no
admission webhooks, one version of a custom resource, no `events.k8s.io`, no exec, attach, proxy or eviction; lists
are never cut into pages; it deletes dependents in the background only; CEL rules have the standard functions and no
`oldSelf`, and their types and cost are not checked; protobuf bodies are read for a handful of kinds; built-in kinds are
validated where this project relies on it, and `kubectl explain` does not know their fields.
"""
