"""What probes say about the run: the cause that they speak for, and findings for the diagnosis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from traindx.experiments.probes.reference_floors import SimpleModel
from traindx.model.findings import Evidence, Finding, Strength
from traindx.model.metric_names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of
from traindx.model.probes import PROBE, Effect, Probe, Probing
from traindx.model.trials import counted, number

CLOSE = 0.75  # of the largest gain: then the more specific change is the likelier cause
AT_CONSTANT = 0.05  # of the distance from the constant prediction to nothing left
BEYOND = 0.05  # of it, by which a simple model has to be better to be worth a word


def leading(probes: Sequence[Probe], ranks: Mapping[str, int]) -> Probe | None:
    """Return the change that says most about the cause: large gain, and specific among equals."""
    helpful = [p for p in probes if p.helps]
    if not helpful:
        return None
    best = max(map(merit_of, helpful))
    close = [p for p in helpful if merit_of(p) >= CLOSE * best]
    return min(close, key=lambda p: (ranks.get(p.change, 9), -merit_of(p)))


def merit_of(probe: Probe) -> float:
    """Return a gain as a share of what was left to gain."""
    if not math.isfinite(probe.before):
        return math.inf
    if kind_of(probe.metric) in HIGHER_IS_BETTER:
        top = 1.0 if probe.before <= 1.0 else 100.0
        return (probe.after - probe.before) / max(top - probe.before, 1e-9)
    return (probe.before - probe.after) / max(abs(probe.before), 1e-9)


def findings_of(probing: Probing, lead: Probe | None) -> list[Finding]:
    """Return each helpful change as a finding: the leading one shows its cause, others suggest.

    Where none helps, and a model that is fitted in a moment does better, that is to be explained.
    """
    made = [_finding(p, is_lead=p is lead) for p in probing.probes if p.helps]
    if any(p.effect is Effect.OPEN for p in probing.probes):
        return made  # something promising is yet to be decided
    better = remarks_on_floors(probing.metric, probing.level, probing.floors)
    return made or [_unexplained(remark, probing) for remark in better[:1]]


def _unexplained(remark: str, probing: Probing) -> Finding:
    values = {n: v for n, v in probing.floors.items() if math.isfinite(v)}
    return Finding(
        _upper(remark),
        Strength.MODERATE,
        (Evidence(remark, "probe: floors", probing.metric, values=values),),
        suggests={"insufficient-capacity": Strength.WEAK, "lr-too-low": Strength.WEAK},
        is_symptom=True,
        detector=PROBE,
    )


def _finding(probe: Probe, *, is_lead: bool) -> Finding:
    claim = f"With {_lower(probe.change)} {probe.metric} goes from {_gain(probe)}"
    evidence = Evidence(
        f"{probe.metric} {number(probe.before)} as it is, {number(probe.after)} with "
        f"{_lower(probe.change)}; noise {number(probe.noise)}",
        f"probe: {probe.change}",
        f"{counted(probe.seeds, 'seed')}, {counted(probe.steps, 'step')}",
        values={"before": probe.before, "after": probe.after, "noise": probe.noise},
    )
    return Finding(
        claim,
        Strength.STRONG if is_lead else Strength.MODERATE,
        (evidence,),
        suggests={} if is_lead else {probe.cause: Strength.WEAK},
        shows=probe.cause if is_lead else None,
        is_symptom=is_lead,
        patch=probe.patch if is_lead else None,
        detector=PROBE,
    )


def _gain(probe: Probe) -> str:
    return f"{number(probe.before)} to {number(probe.after)} (noise {number(probe.noise)})"


def _lower(text: str) -> str:
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def summary_of_probes(probing: Probing, lead: Probe | None) -> str:
    """Return what the probes came to, in a sentence or two."""
    tried = len(probing.probes)
    if lead is not None:
        return f"{_upper(lead.change)} helps beyond noise: {lead.metric} {_gain(lead)}."
    if not tried:
        return "No change could be tried."
    open_ones = [
        p.change for p in probing.probes if p.effect is Effect.OPEN and "promising" in p.says
    ]
    if open_ones:
        return f"Promising, and not decided in the time there was: {', '.join(open_ones)}."
    if remarks_on_floors(probing.metric, probing.level, probing.floors):
        return f"None of {counted(tried, 'change')} helps beyond noise."
    level = f" ({probing.metric} {number(probing.level)})" if math.isfinite(probing.level) else ""
    return (
        f"None of {counted(tried, 'change')} helps beyond noise: it does about as well as they let "
        f"it{level}."
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


# floors


def floors_in(metric: str, models: Mapping[str, SimpleModel]) -> dict[str, float]:
    """Return what simple models reach in units of a metric."""
    kind = kind_of(metric)
    if kind == "accuracy":
        return {n: m.score for n, m in models.items() if math.isfinite(m.score)}
    if kind == "rmse":
        return {n: math.sqrt(m.loss) for n, m in models.items()}
    if kind in ("loss", "mse"):
        return {n: m.loss for n, m in models.items()}
    return {}


def remarks_on_floors(metric: str, level: float, floors: Mapping[str, float]) -> list[str]:
    """Say where a run stands among what costs next to nothing."""
    constant = floors.get("constant")
    if constant is None or not math.isfinite(level):
        return []
    kind = kind_of(metric)
    if kind not in HIGHER_IS_BETTER | LOWER_IS_BETTER:
        return []
    is_higher = kind in HIGHER_IS_BETTER
    span = max((1.0 - constant) if is_higher else constant, 1e-12)
    sign = 1.0 if is_higher else -1.0
    remarks = []
    if sign * (level - constant) < AT_CONSTANT * span:
        said = f"it is at the level of a constant prediction ({number(constant)})"
        remarks.append(
            f"{metric} ends at {number(level)}: {said}, so it has learnt next to nothing"
        )
    for name, words in (("linear", "a linear model"), ("nearest_neighbour", "nearest neighbours")):
        reached = floors.get(name)
        if reached is not None and sign * (reached - level) > BEYOND * span:
            remarks.append(
                f"{words} on the same inputs reaches {number(reached)} where the model ends at "
                f"{number(level)}"
            )
    return remarks
