"""A model for an assistant: its parameters by block, and what is out of balance among them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from traindx.errors import UnreadableArtifact
from traindx.model.findings import Diagnosis, Finding
from traindx.model.recording import Process, Sample
from traindx.model.run import Architecture, Run, Tensor
from traindx.report.catalogue import all_detectors
from traindx.report.digest import blocks

LARGEST = 8
_ABOUT_MODELS = frozenset({"architecture", "checkpoint", "checkpoints"})
_REMEDY = "a checkpoint, a model summary, or a recording of traindx run"


def analyze(run: Run, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return what is known of a run's model, the findings about it first."""
    main = run.recording.main if run.recording is not None else None
    if run.architecture is None:
        why = "nothing here lists the parameters of a model"
        raise UnreadableArtifact(run.name, why, _REMEDY)
    found = [f for f in diagnosis.findings if f.detector in _detectors()]
    told: dict[str, Any] = {
        "run": run.name,
        "imbalances": [_finding(finding) for finding in found],
        **_architecture(run.architecture),
        "checkpoints": [
            {"artifact": c.artifact, "step": c.step, "epoch": c.epoch} for c in run.checkpoints
        ],
    }
    if main is not None:
        told["recorded"] = _recorded(main)
    return told


def _detectors() -> frozenset[str]:
    return frozenset(
        d.name
        for d in all_detectors()
        if d.family == "architecture"
        or any(part in _ABOUT_MODELS for need in d.needs for part in need.split("|"))
    )


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "detector": finding.detector,
        "claim": finding.claim,
        "strength": finding.strength.value,
        "evidence": [
            {"says": e.says, "artifact": e.artifact, "locator": e.locator} for e in finding.evidence
        ],
    }


def _architecture(architecture: Architecture) -> dict[str, Any]:
    tensors = architecture.tensors
    total = sum(t.size for t in tensors)
    dtypes: Counter[str] = Counter()
    for tensor in tensors:
        dtypes[tensor.dtype or "unknown"] += tensor.size
    return {
        "artifact": architecture.artifact,
        "parameters": total,
        "tensors": len(tensors),
        "dtypes": dict(dtypes),
        "blocks": [
            {"name": b.name, "size": b.size, "share": _share(b.size, total), "tensors": b.tensors}
            for b in blocks(architecture)
        ],
        "largest": [
            {"name": t.name, "shape": list(t.shape), "share": _share(t.size, total)}
            for t in sorted(tensors, key=lambda t: -t.size)[:LARGEST]
        ],
        "not_numbers": [t.name for t in tensors if _has_odd_values(t)],
    }


def _has_odd_values(tensor: Tensor) -> bool:
    return any(tensor.statistics.get(kind, 0.0) > 0 for kind in ("nan", "inf"))


def _share(size: int, total: int) -> float:
    return round(size / total, 4) if total else 0.0


def _recorded(process: Process) -> dict[str, Any]:
    """Return what a recorder saw: what is frozen, and the last look at gradients by block."""
    model = max(process.models, key=lambda m: (len(m.parameters), m.line), default=None)
    frozen = [p for p in model.parameters if not p.is_trainable] if model is not None else []
    sample = process.samples[-1] if process.samples else None
    return {
        "type": model.type if model is not None else "",
        "frozen_parameters": sum(math.prod(p.shape) for p in frozen),
        "frozen": [p.name for p in frozen],
        "last_look": None if sample is None else _look(sample),
    }


def _look(sample: Sample) -> dict[str, Any]:
    names = {name: i for i, name in enumerate(sample.names)}
    listed = Architecture(tuple(Tensor(name, (1,)) for name in names), "")
    rows = []
    for block in blocks(listed):
        own = [i for name, i in names.items() if _is_in(name, block.name)]
        ratios = list(_known(sample.update_ratios, own))
        rows.append(
            {
                "name": block.name,
                "grad_norm": _norm(_known(sample.grad_norms, own)),
                "weight_norm": _norm(_known(sample.weight_norms, own)),
                "largest_update_ratio": max(ratios, default=None),
                "without_gradient": len(own) - len(list(_known(sample.grad_norms, own))),
            }
        )
    return {"step": sample.step, "blocks": rows}


def _is_in(name: str, block: str) -> bool:
    return name == block or name.startswith(f"{block}.")


def _known(column: Sequence[float | None], own: Iterable[int]) -> Iterable[float]:
    return (value for i in own if i < len(column) and (value := column[i]) is not None)


def _norm(values: Iterable[float]) -> float:
    return float(f"{math.sqrt(sum(v * v for v in values)):.6g}")
