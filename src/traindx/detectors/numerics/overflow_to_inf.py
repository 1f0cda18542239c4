from collections.abc import Mapping
from dataclasses import replace

from traindx.analysis.recordings.breakdowns import (
    Breakdown,
    BreakdownKind,
    breakdown_of,
    is_of_half_weights,
)
from traindx.analysis.recordings.broken_steps import cite_growth
from traindx.examples import recorded, sampled
from traindx.model.recording import NonFinite, Process, Sample, Summary
from traindx.registry import Evidence, Findings, Run, Strength, detector, finding


@detector(
    needs=("recording",),
    suggests=(
        "exploding-activations", "lr-too-high", "missing-gradient-clipping", "bad-initialisation",
        "fp16-overflow", "half-precision-weights", "unstable-operation", "nan-in-data",
    ),
)  # fmt: skip
def check(run: Run) -> Findings:
    """The first NaN or infinity is a value too large for its type.

    ## What it detects
    The record of a replayed step in which a product or a sum overflows since what it was given is
    already astronomical, an operation in float16 that leaves its range, or weights that were no
    numbers before the step began. Samples of earlier steps tell whether the weights or the loss had
    grown, which speaks for steps that are too large; weights kept in float16 speak for their type.

    ## Why it matters
    The operation is not at fault here: guarding it would hide a divergence that began before.

    ## What to do
    If weights grew: a lower learning rate, warm-up, gradient clipping. If the very first forward
    pass overflows: normalisation, initialisation, the scale of the inputs. If only float16
    overflows: bfloat16, or that operation in float32.

    ## When it is wrong
    Without an earlier sample the course is not known and the causes stay open.
    """
    found = breakdown_of(run)
    if found is None or found.kind not in (
        BreakdownKind.OVERFLOW,
        BreakdownKind.WEIGHTS,
        BreakdownKind.HALF,
    ):
        return
    earlier = [s for s in found.process.samples if s.step < found.record.step]
    grown = cite_growth(found.process, earlier)
    shows, suggests = _causes(found, earlier, grown)
    yield finding(
        _claim(found),
        suggests,
        *found.evidence,
        *grown,
        shows=shows,
        against=dict.fromkeys(("unstable-operation", "nan-in-data"), _STRONG)
        if found.is_shown
        and (found.kind is not BreakdownKind.WEIGHTS or is_of_half_weights(found.record))
        else {},
        place=found.record.place,
    )


def _claim(found: Breakdown) -> str:
    record = found.record
    if found.kind is BreakdownKind.WEIGHTS:
        what = f" ({record.parameter})" if record.parameter else ""
        return f"Weights{what} were already NaN or infinite before step {record.step}"
    title = found.title[0].upper() + found.title[1:]
    return f"{title} overflows at step {record.step}: {found.edge}"


def _causes(
    found: Breakdown, earlier: list[Sample], grown: tuple[Evidence, ...]
) -> tuple[str | None, Mapping[str, Strength]]:
    if found.kind is BreakdownKind.HALF:
        return ("fp16-overflow", {}) if found.is_shown else (None, {"fp16-overflow": _STRONG})
    if found.kind is BreakdownKind.WEIGHTS and is_of_half_weights(found.record):
        return None, {"half-precision-weights": _STRONG, "fp16-overflow": Strength.MODERATE}
    if grown:
        return None, {
            "lr-too-high": _STRONG,
            "exploding-activations": Strength.MODERATE,
            "missing-gradient-clipping": Strength.WEAK,
        }
    if found.kind is BreakdownKind.WEIGHTS:
        return None, dict.fromkeys(("lr-too-high", "unstable-operation", "nan-in-data"), _WEAK)
    if found.is_shown and found.record.step <= 1 and not earlier:
        return "exploding-activations", {"bad-initialisation": Strength.MODERATE}
    return None, {"exploding-activations": _STRONG, "lr-too-high": Strength.MODERATE}


_STRONG, _WEAK = Strength.STRONG, Strength.WEAK


def _huge(value: float, dtype: str = "float32") -> Summary:
    return Summary("self", (32, 64), dtype, "cpu", -value, value, 0.0, value / 3)


def _run(*inputs: Summary, phase: str = "forward", norms: tuple[float, ...] = ()) -> Run:
    record = NonFinite(9, 57, phase=phase, op="addmm", is_exact=True, inputs=inputs)
    process = sampled(
        len(norms), step=lambda i: 10 * i, weight_norms=lambda i: (norms[i],), loss=1.0
    )
    return recorded(replace(process, nonfinite=(record,)))


FIRES = {
    "weights grew": _run(_huge(1e25), norms=(5.0, 4e12)),
    "half precision": _run(_huge(900.0, "float16")),
    "weights were broken before": _run(phase="weights", norms=(5.0, 4e12)),
    "weights in half precision": _run(_huge(0.1, "float16"), phase="weights"),
    "no history": _run(_huge(1e25)),
}

SILENT = {
    "near miss: ordinary inputs": _run(_huge(3.0)),
    "near miss: bfloat16 has the range of float32": _run(_huge(900.0, "bfloat16")),
    "nothing broke": recorded(Process()),
}
