"""How much an assistant is told at once: its context is precious, so summaries come first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

MAX_TIME_S = 120.0  # for one answer
SUMMARY_CHARS = 12_000  # about 3,000 tokens
FULL_CHARS = 60_000
MORE = "call again with detail='full', or ask for less at a time"

# entries of a list and characters of a text, tried in turn until the whole fits
_LADDER = ((100, 4000), (40, 2000), (20, 1200), (10, 800), (6, 500), (4, 300), (2, 160), (1, 80))


def fit(data: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """Return data that is at most about `limit` characters long as JSON, and say what it lost.

    Lists are cut at their end, for the best comes first; `left_out` counts what was cut by key.
    """
    made: dict[str, Any] = {}
    for items, chars in _LADDER:
        lost: dict[str, int] = {}
        made = {key: _cut(value, key, items, chars, lost) for key, value in data.items()}
        if lost:
            made["left_out"] = {**lost, "more": MORE}
        if len(json.dumps(made, ensure_ascii=False)) <= limit:
            break
    return made


def _cut(value: Any, key: str, items: int, chars: int, lost: dict[str, int]) -> Any:
    if isinstance(value, str):
        return value if len(value) <= chars else f"{value[:chars]} … ({len(value)} characters)"
    if isinstance(value, Mapping):
        kept = list(value.items())[: 4 * items]
        _note(key, len(value) - len(kept), lost)
        return {str(k): _cut(v, f"{key}.{k}", items, chars, lost) for k, v in kept}
    if isinstance(value, (list, tuple)):
        _note(key, len(value) - items, lost)
        return [_cut(item, key, items, chars, lost) for item in value[:items]]
    return value


def _note(key: str, count: int, lost: dict[str, int]) -> None:
    if count > 0:
        lost[key] = lost.get(key, 0) + count


def summarise_diagnosis(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a diagnosis in the shape of the contract, with the verdict and what it rests on."""
    used = {item["says"] for cause in told["root_causes"] for item in cause["evidence"]}
    rest = [f for f in told["findings"] if not used & {e["says"] for e in f["evidence"]}]
    brief = {
        **{key: told[key] for key in ("schema_version", "status", "summary")},
        "root_causes": [_brief_cause(cause) for cause in told["root_causes"][:5]],
        "quick_fixes": told["quick_fixes"][:5],
        "hypotheses": [_only(h, "cause", "confidence", "issue") for h in told["hypotheses"][:6]],
        "findings": [_only(f, "detector", "claim", "strength") for f in rest[:8]],
        "skipped": _one_by_remedy(told["skipped"])[:6],
        "failed": told["failed"][:5],
        "questions": told["questions"][:5],
        "artifacts": [{**a, "warnings": a["warnings"][:3]} for a in told["artifacts"][:12]],
        "duration_s": told["duration_s"],
    }
    counted = ("root_causes", "hypotheses", "findings", "skipped", "artifacts")
    lost = {key: len(told[key]) - len(brief[key]) for key in counted}
    made = fit(brief, SUMMARY_CHARS)
    lost = {key: count for key, count in lost.items() if count > 0}
    if lost:
        made["left_out"] = {**made.get("left_out", {}), **lost, "more": MORE}
    return made


def _brief_cause(cause: Mapping[str, Any]) -> dict[str, Any]:
    """The first remedy is the smallest; the others wait until it has failed."""
    return {
        **cause,
        "evidence": cause["evidence"][:4],
        "against": cause["against"][:3],
        "remedies": cause["remedies"][:1],
    }


def _only(entry: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: entry[key] for key in keys}


def _one_by_remedy(skipped: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of the checks that lack the same thing, one says how to provide it."""
    return list({entry["how"]: entry for entry in reversed(skipped)}.values())[::-1]
