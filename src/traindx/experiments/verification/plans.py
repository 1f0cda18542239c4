"""Which change tests which cause, with values from the run.

The patch of a remedy is what the user is told to do, so it is what is tested. Where there is none,
an intervention stands in. A cause without a test says why it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log

import numpy as np

from traindx.causes.facts import rate_cut, rate_in_use
from traindx.experiments.changes import Change, Intervention, Value
from traindx.experiments.verification.observed_rerun import main_process, steps_in
from traindx.experiments.verification.verdicts import Harm
from traindx.model.findings import Hypothesis
from traindx.model.recording import Optimizer
from traindx.model.run import Run

USUAL_RATE = {"sgd": 0.01, "rmsprop": 1e-3, "adagrad": 0.01, "adadelta": 1.0, "lbfgs": 1.0}
ADAPTIVE_RATE = 1e-3  # Adam and its kin
CLIP_OVER_MEDIAN = 2.0  # a clip at twice the ordinary norm leaves ordinary steps alone
GENTLE = 0.5  # a rate that is halved is tested by what shows more in a few steps
WARM_UP_SHARE = 0.1  # of the steps; longer than in a recipe, for a rerun is short

Changes = Callable[[Run], tuple[Change, ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a cause is tested.

    `is_generic` marks changes that help against many causes, so that success alone does not tell
    one from another. `why_untestable` is said where neither a change nor a patch is at hand.
    """

    changes: Changes | None = None
    harm: Harm = Harm.LEARNING
    is_generic: bool = False
    needs_evaluation: bool = False
    why_untestable: str = ""


def _one(says: str, *names: str, **values: Value) -> Changes:
    """A change that is the same for every run; the values belong to the first name."""
    first, *rest = names
    made = (Intervention(first, values), *(Intervention(n) for n in rest))
    return lambda run: (Change(says, made),)


def _lower_rate(run: Run) -> tuple[Change, ...]:
    advised = 1.0 / rate_cut(run)
    factors = (advised, 0.1, 0.01, 0.3) if advised < GENTLE else (0.1, 0.01, 0.3)
    return tuple(_rate(run, factor, is_damping=True) for factor in dict.fromkeys(factors))


def _higher_rate(run: Run) -> tuple[Change, ...]:
    return tuple(_rate(run, factor) for factor in (10.0, 100.0))


def _rate(run: Run, factor: float, *, is_damping: bool = False) -> Change:
    says = f"learning rate times {factor:g}"
    made = (Intervention("learning-rate", {"factor": factor}),)
    verb = "Reduce" if factor < 1 else "Raise"
    found = rate_in_use(run)
    remedy = f"{verb} the learning rate: multiply it by {factor:g}"
    if found is not None:
        name, text, value = found
        remedy = f"{verb} {name} from {text} to {value * factor:g}"
    return Change(says, made, is_damping=is_damping, remedy=remedy)


def _usual_rate(run: Run) -> tuple[Change, ...]:
    """The highest rate that the run itself used, or else what its optimizer is usually run with."""
    series = run.get("lr")
    used = series.finite().values if series is not None else np.empty(0)
    value = float(used.max()) if len(used) else 0.0
    if value <= 0.0:
        optimizer = _optimizer(run)
        kind = optimizer.type.lower() if optimizer is not None else ""
        value = USUAL_RATE.get(kind, ADAPTIVE_RATE)
    made = Intervention("learning-rate", {"value": value})
    return (Change(f"learning rate fixed at {value:g}", (made,)),)


def _optimizer(run: Run) -> Optimizer | None:
    process = main_process(run)
    return process.optimizers[-1] if process is not None and process.optimizers else None


def _warm_up(run: Run) -> tuple[Change, ...]:
    steps = max(10, ceil(WARM_UP_SHARE * steps_in(run)))
    made = Intervention("warm-up", {"steps": steps})
    return (Change(f"warm-up over {steps} steps", (made,), is_damping=True),)


def _clip(run: Run) -> tuple[Change, ...]:
    norm = _ordinary_norm(run)
    made = Intervention("gradient-clipping", {"max_norm": norm})
    return (Change(f"gradients clipped to a norm of {norm:g}", (made,), is_damping=True),)


def _ordinary_norm(run: Run) -> float:
    """A norm that leaves the ordinary steps of the run alone."""
    series = run.get("grad_norm")
    norms = series.finite().values if series is not None else np.empty(0)
    early = norms[: max(3, len(norms) // 2)]
    if not len(early) or not 0.0 < float(np.median(early)) < 1e3:
        return 1.0
    return float(f"{CLIP_OVER_MEDIAN * float(np.median(early)):.2g}")


def _own_clip(run: Run) -> tuple[Change, ...]:
    """Clip before the step, at the norm that the program clips to after it."""
    norm = _clip_max(run)
    if norm is None:
        return _clip(run)
    made = Intervention("gradient-clipping", {"max_norm": norm})
    return (Change(f"gradients clipped to {norm:g} before the step", (made,), is_damping=True),)


def _clip_max(run: Run) -> float | None:
    series = run.get("clip_max")
    values = series.finite().values if series is not None else np.empty(0)
    value = float(np.median(values)) if len(values) else 0.0
    return value if 0.0 < value < float("inf") else None


def _whiten(run: Run) -> tuple[Change, ...]:
    return (Change("inputs normalised", (Intervention("normalise-inputs"),)),)


def _fresh_start(run: Run) -> tuple[Change, ...]:
    return (Change("weights initialised as PyTorch does", (Intervention("initialisation"),)),)


def _start_or_inputs(run: Run) -> tuple[Change, ...]:
    return (*_fresh_start(run), *_whiten(run))


_OTHER_MODEL = "it takes another model to test it"
_OTHER_DATA = "it takes other data to test it"
_ONLY_PATCH = "only a change of the source tests it, and there is no patch for this one"
_DESIGN = "what to change is a matter of design: no single change tests it"
_OUTSIDE = "it lies outside of the program: rerunning it here tells nothing"
_TIMES = "it shows in times on the machine that it ran on: rerunning it here tells nothing"
_NEEDS_TWO = "it shows between runs that should be alike, not in one of them"
_SIZE = "it shows only at the size of the original run on its own device"
_LONG = "it takes a whole training to show, and no single change that removes it"

_patch_only = Plan(why_untestable=_ONLY_PATCH)
_patch_for_finding = Plan(harm=Harm.FINDING, why_untestable=_ONLY_PATCH)
_skip_bad = Plan(_one("batches with invalid values left out", "skip-bad-batches"))
_init = Plan(_fresh_start)
_precise = Plan(_one("mixed precision switched off", "full-precision"))


def _not(why: str) -> Plan:
    return Plan(why_untestable=why)


PLANS: Mapping[str, Plan] = {
    # numerics
    "nan-in-data": _skip_bad,
    "unstable-operation": Plan(
        _one("operations kept within their domain", "guarded-operations")
    ),
    "fp16-overflow": _precise,
    "loss-scale-collapse": _precise,
    "fully-masked-attention": Plan(
        _one("rows that are masked altogether left unmasked", "guarded-operations", softmax=True)
    ),
    "exploding-activations": _init,
    # optimisation
    "lr-too-high": Plan(_lower_rate, is_generic=True),
    "lr-too-low": Plan(_higher_rate, is_generic=True),
    "lr-zero": Plan(_usual_rate),
    "lr-schedule-misuse": Plan(_usual_rate, is_generic=True),
    "missing-warmup": Plan(_warm_up, is_generic=True),
    "missing-gradient-clipping": Plan(_clip, is_generic=True),
    "gradient-clipping-too-tight": _patch_only,
    "vanishing-gradients": _not(_OTHER_MODEL),
    "missing-optimizer-step": Plan(
        _one("an optimizer step after each backward pass", "optimizer-step")
    ),
    "missing-zero-grad": Plan(_one("gradients cleared before each backward pass", "zero-grad")),
    "missing-backward": _patch_only,
    "gradients-cleared-before-step": _patch_only,
    "gradient-accumulation-unscaled": _patch_only,
    "clip-after-step": Plan(_own_clip, is_generic=True),
    "parameters-not-in-optimizer": Plan(
        _one("all parameters given to the optimizer", "all-parameters")
    ),
    "frozen-parameters": Plan(_one("all parameters trained", "unfreeze", "all-parameters")),
    "detached-loss": _patch_only,
    "weight-decay-too-high": Plan(_one("no weight decay", "weight-decay", value=0)),
    "batch-too-small": Plan(
        _one("batches eight times as large", "batch-size", factor=8), is_generic=True
    ),
    "bad-initialisation": _init,
    "dead-relu": _init,
    "saturated-activations": Plan(_start_or_inputs),
    "softmax-before-cross-entropy": Plan(
        _one("the loss given what the softmax was given", "raw-loss-input")
    ),
    "loss-expects-probabilities": Plan(
        _one("the loss given what it expects of the raw outputs", "raw-loss-input")
    ),
    "wrong-loss-for-task": _patch_only,
    "target-shape-broadcast": Plan(_one("targets shaped like the predictions", "target-shape")),
    "insufficient-capacity": _not(_OTHER_MODEL),
    "data-distribution-change": _not(_OTHER_DATA),
    "outlier-batch": Plan(_clip, is_generic=True),
    "config-not-applied": _patch_only,
    "competing-losses": _not(_DESIGN),
    "resume-without-optimizer-state": _patch_only,
    # generalisation
    "overfitting": _not(_LONG),
    "data-leakage": _not(_OTHER_DATA),
    "evaluating-on-training-data": _patch_for_finding,
    "training-in-eval-mode": Plan(
        _one("train mode while training, eval mode while evaluating", "modes"), Harm.FINDING
    ),
    "validation-in-train-mode": Plan(
        _one("train mode while training, eval mode while evaluating", "modes"),
        Harm.FINDING,
        needs_evaluation=True,
    ),
    "batchnorm-small-batch": Plan(_one("batches eight times as large", "batch-size", factor=8)),
    "empty-validation": _not(_OTHER_DATA),
    "preprocessing-mismatch": _patch_only,
    "metric-bug": _patch_for_finding,
    "distribution-shift": _not(_OTHER_DATA),
    "class-imbalance": _not(_OTHER_DATA),
    "label-noise": _not(_OTHER_DATA),
    "catastrophic-forgetting": _not(_LONG),
    "seed-variance": _not(_NEEDS_TWO),
    "insufficient-training": _not("`traindx probe` trains longer and says what it gains"),
    "excessive-regularisation": Plan(_one("no dropout", "dropout", value=0.0)),
    # collapse: what a run ends in; its causes are tested in its stead
    **dict.fromkeys(
        ("class-collapse", "constant-prediction", "repetition-collapse", "generator-mode-collapse",
         "posterior-collapse", "representation-collapse", "expert-collapse",
         "policy-entropy-collapse", "halting-collapse"),
        _not(_DESIGN),
    ),
    # architecture
    "embedding-dominated-model": _not(_OTHER_MODEL),
    "parameter-imbalance": _not(_OTHER_MODEL),
    "unregistered-submodules": _patch_only,
    "missing-super-init": _patch_only,
    "missing-nonlinearity": _patch_only,
    "too-deep-without-skip": _not(_OTHER_MODEL),
    "unused-parameters": _patch_for_finding,
    "shape-mismatch": _patch_only,
    "channel-mismatch": _patch_only,
    "output-size-mismatch": _patch_only,
    "vocabulary-mismatch": _patch_only,
    # autograd
    "in-place-modification": _patch_only,
    "graph-freed": _patch_only,
    "graph-retained-across-steps": Plan(
        _one("the running loss detached from its graph", "detach-history"), Harm.FINDING
    ),
    "no-grad-training": _patch_only,
    "incorrect-custom-backward": Plan(
        _one("the gradient derived by torch from the forward pass", "built-in-gradient")
    ),
    "non-differentiable-operation": _patch_only,
    # tensors
    "device-mismatch": _patch_only,
    "dtype-mismatch": _patch_only,
    "index-out-of-range": Plan(_one("indices kept within their table", "valid-indices")),
    "label-out-of-range": _skip_bad,
    "non-contiguous-view": _patch_only,
    "api-misuse": _patch_only,
    "name-shadowed": _patch_only,
    # memory
    "activation-memory": _not(_SIZE),
    "graph-kept-alive": Plan(
        _one("the running loss detached from its graph", "detach-history"), Harm.FINDING
    ),
    "evaluation-with-grad": Plan(
        harm=Harm.FINDING, needs_evaluation=True, why_untestable=_ONLY_PATCH
    ),
    "memory-fragmentation": _not(_SIZE),
    "optimizer-state-memory": _not(_SIZE),
    "device-shared": _not(_OUTSIDE),
    "host-memory-growth": _patch_for_finding,
    "shared-memory-exhausted": Plan(_one("no workers in loaders", "no-workers"), Harm.FINDING),
    # performance
    **dict.fromkeys(
        ("data-loading-bound", "host-bound", "synchronisation-in-loop", "underutilised-batch",
         "communication-bound", "straggler-rank", "precision-unused", "checkpoint-overhead"),
        _not(_TIMES),
    ),
    "recompilation": Plan(_one("no compilation", "no-compile"), Harm.FINDING),
    "graph-breaks": Plan(_one("no compilation", "no-compile"), Harm.FINDING),
    # distributed
    "ddp-unused-parameters": _patch_only,
    "collective-mismatch": _patch_only,
    "rank-failed-first": _not("it tells which rank to look at; what failed there is tested"),
    "uneven-inputs": _patch_only,
    "missing-distributed-sampler": Plan(
        _one("each rank given its own part of the data", "distributed-sampler"), Harm.FINDING
    ),
    "sampler-epoch-not-set": _patch_for_finding,
    "rank-desync": Plan(
        _one("parameters of rank 0 given to all ranks", "same-weights"), Harm.FINDING
    ),
    "rendezvous-failure": _not(_OUTSIDE),
    # mixed precision
    "clip-without-unscale": _patch_only,
    "missing-scaler-update": _patch_only,
    "scaler-bypassed": _patch_only,
    "half-precision-weights": _patch_only,
    "deprecated-amp-api": _patch_for_finding,
    # checkpoints and reproducibility
    "state-dict-key-mismatch": _patch_only,
    "state-dict-shape-mismatch": _patch_only,
    "best-weights-overwritten": _not("training goes well; what is kept of it is wrong"),
    "incomplete-checkpoint": _not("it shows when a run is resumed"),
    "corrupt-checkpoint": _not(_OUTSIDE),
    "unsafe-checkpoint": _not("a file that may run code is not loaded, for a test neither"),
    "unseeded-randomness": _not(_NEEDS_TWO),
    "nondeterministic-operation": _not(_NEEDS_TWO),
    "worker-seed-duplication": _patch_for_finding,
    "data-order-lost-on-resume": _patch_for_finding,
    # data
    "stale-cache": _patch_for_finding,
    "duplicate-examples": _patch_for_finding,
    "unnormalised-inputs": Plan(_whiten),
    "unnormalised-targets": _patch_only,
    "degenerate-batch": _not(_OTHER_DATA),
    "unshuffled-training-data": Plan(_one("training data shuffled", "shuffle")),
    "padding-in-loss": _patch_only,
    "prompt-in-loss": _patch_only,
    "labels-all-masked": _patch_only,
    "eos-never-trained": _patch_for_finding,
    "truncated-sequences": _patch_for_finding,
    "reward-without-signal": _patch_only,
    "reward-hacking": _not(_OTHER_DATA),
    "policy-drift": _patch_for_finding,
    "evaluation-outputs-kept": _patch_only,
    "augmentation-in-validation": Plan(
        harm=Harm.FINDING, needs_evaluation=True, why_untestable=_ONLY_PATCH
    ),
    "misaligned-labels": _not(_OTHER_DATA),
    "worker-crash": Plan(_one("no workers in loaders", "no-workers")),
    # environment
    "killed-by-host": _not(_OUTSIDE),
    "disk-full": _not(_OUTSIDE),
    "version-mismatch": _not(_OUTSIDE),
}  # fmt: skip


def plan_of(cause: str) -> Plan:
    """Return how a cause is tested."""
    return PLANS.get(cause, _patch_only)


def changes_for(hypothesis: Hypothesis, run: Run) -> tuple[Change, ...]:
    """Return the changes that test a hypothesis, best first; none where nothing tests it.

    Where a patch is shown it alone is tested: a switch in its stead may do something else.
    """
    plan = plan_of(hypothesis.cause)
    made = plan.changes(run) if plan.changes is not None else ()
    return _patches(hypothesis) or made


def _patches(hypothesis: Hypothesis) -> tuple[Change, ...]:
    """Return the patch that the user is told to apply, of a remedy or of a finding."""
    for remedy in hypothesis.remedies:
        if remedy.patch:
            return (Change(remedy.change, patch=remedy.patch),)
    found = next((f for f in hypothesis.findings if f.patch), None)
    return (Change(found.claim, patch=found.patch),) if found is not None else ()


def is_worth_trying(change: Change, tried: Change, *, has_cleared: bool) -> bool:
    """Tell whether another value of the same change may decide what one of them did not.

    What cleared the symptom and did not learn went too far; what left it did not go far enough.
    """
    now, before = _force(change), _force(tried)
    if now is None or before is None:
        return True
    return now < before if has_cleared else now > before


def _force(change: Change) -> float | None:
    """Return how strongly a change scales what it scales; None if it scales nothing."""
    if len(change.interventions) != 1:
        return None
    factor = change.interventions[0].values.get("factor")
    return abs(log(factor)) if isinstance(factor, float) and factor > 0 else None


def why_untestable(cause: str) -> str:
    """Return why no rerun tests a cause, where no patch is at hand either."""
    return plan_of(cause).why_untestable
