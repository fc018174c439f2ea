"""Reviews: kinds that are created but never stored. Every user may do everything."""

from __future__ import annotations

from dragoman_devcluster.api.discovery import REVIEWS
from dragoman_devcluster.api.objects import Json, Object, get
from dragoman_devcluster.api.tokens import ADMINISTRATOR, TokenIssuer


def review_kind(path: str) -> str | None:
    """The kind of review that is posted at a path, or None."""
    parts = path.strip("/").split("/")
    if len(parts) == 6 and parts[3] == "namespaces":
        parts = [*parts[:3], parts[5]]
    for group, version, kind, plural, _ in REVIEWS:
        if parts == ["apis", group, version, plural]:
            return kind
    return None


def review(kind: str, body: Json, user: str | None, tokens: TokenIssuer) -> Object:
    """The review with its status for `user`."""
    spec = get(body, "spec") or {}
    status: Object
    if kind == "TokenReview":
        known = tokens.user_of(str(spec.get("token", "")))
        status = {"authenticated": known is not None, "user": _user(known) if known else {}}
    elif kind == "SelfSubjectReview":
        status = {"userInfo": _user(user or ADMINISTRATOR)}
    elif kind == "SelfSubjectRulesReview":
        every = ["*"]
        rules = [{"verbs": every, "apiGroups": every, "resources": every}]
        status = {
            "resourceRules": rules,
            "nonResourceRules": [{"verbs": every, "nonResourceURLs": every}],
            "incomplete": False,
        }
    else:
        status = {"allowed": True, "reason": "this API lets every authenticated user do everything"}
    group = next(group for group, _, name, *_ in REVIEWS if name == kind)
    return {"kind": kind, "apiVersion": f"{group}/v1", "metadata": {}, "spec": spec, "status": status}


def _user(name: str) -> Object:
    if not name.startswith("system:serviceaccount:"):
        return {"username": name, "groups": ["system:masters", "system:authenticated"]}
    namespace = name.split(":")[2]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return {"username": name, "groups": groups}
