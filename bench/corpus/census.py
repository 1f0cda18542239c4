"""Counting the incidents of a half: by cause, by family, healthy and not."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

CACHE = Path(__file__).parents[1] / "cache" / "corpus"


def labels(half: str) -> list[dict[str, Any]]:
    """Return the labels of one half, by name."""
    found = sorted((CACHE / half).glob("*/label.json"))
    return [json.loads(p.read_text(encoding="utf-8")) for p in found]


def census(half: str) -> str:
    """Return the counts of one half as text."""
    every = labels(half)
    if not every:
        return f"{half}: no incidents"
    healthy = [x for x in every if x["cause"] is None]
    weak = [x for x in healthy if x["injected"]]
    causes = Counter(x["cause"] for x in every if x["cause"])
    families = Counter(x["family"] for x in every if x["cause"])
    # a label from before there were several has no form: it is the first, named as the operator
    forms = Counter(
        f"{x['operator']}/{x.get('form') or x['operator']}" for x in every if x["cause"]
    )
    first = sum(n for k, n in forms.items() if len(set(k.split("/"))) == 1)
    lines = [
        f"{half}: {len(every)} incidents, {len(healthy)} healthy "
        f"({len(healthy) / len(every):.0%}), {len(weak)} of them with a fault too weak to matter; "
        f"{len(causes)} causes",
        "families: " + ", ".join(f"{k} {n}" for k, n in families.most_common()),
        "causes: " + ", ".join(f"{k} {n}" for k, n in sorted(causes.items())),
        f"forms: {len(forms)}, {first} incidents in the first form of their operator; "
        + ", ".join(f"{k} {n}" for k, n in sorted(forms.items())),
    ]
    return "\n".join(lines)
