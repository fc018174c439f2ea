"""The figures as a small table."""

from __future__ import annotations

from typing import Any

from dragoman_tune.report import markdown

HEAD = ("", "measured")


def table(document: dict[str, Any]) -> str:
    """The figures of one run, and its calls by verb and resource."""
    create, idle, drift, takeover = (document[part] for part in ("create", "idle", "drift", "takeover"))
    peak = max(create["peak_memory_bytes"], takeover["peak_memory_bytes"])
    rows = [
        ("objects", str(document["objects"])),
        ("all children after the first apply", f"{create['all_children_s']:.1f} s"),
        ("nothing changes any more after", f"{create['settled_s']:.1f} s"),
        ("API calls an object", f"{create['calls_per_object']:.1f}"),
        ("reconciliations an object", f"{create['reconciles_per_object']:.1f}"),
        ("CPU of the operator", f"{create['cpu_s']:.1f} s"),
        ("peak memory", f"{peak / 1e6:.0f} MB"),
        ("idle: requests", f"{idle['requests_per_s']:.2f} a second"),
        ("idle: CPU", f"{idle['cores']:.1%} of a core"),
        (
            "a child deleted or changed is repaired after",
            f"{drift['median_s']:.2f} s, {drift['max_s']:.2f} s",
        ),
        ("takeover after kill -9", f"{takeover['edits_reconciled_s']:.1f} s"),
        ("children lost or replaced in the takeover", str(takeover["children_lost_or_replaced"])),
        ("writes of the standby for 3 changes", str(takeover["writes"])),
    ]
    calls = [(name, f"{count / document['objects']:.2f}") for name, count in create["calls"].items()]
    return f"{markdown(HEAD, rows)}\n\n{markdown(('calls an object', ''), calls)}"
