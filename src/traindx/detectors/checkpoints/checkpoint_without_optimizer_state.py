"""A training checkpoint lacks the optimizer's state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from traindx.examples import make_run
from traindx.model.findings import Evidence, Finding, Strength, cite_event, cite_setting
from traindx.model.run import Architecture, Event, Run, Setting, Tensor
from traindx.registry import detector

HAS_OPTIMIZER = "checkpoint.has_optimizer"
# files that are kept for use, not for going on
_FOR_USE = re.compile(r"best|final|release|infer|deploy|export|ema|pretrain|slim", re.IGNORECASE)


@detector(needs=("checkpoint",), suggests=("incomplete-checkpoint",))
def check(run: Run) -> Iterator[Finding]:
    """A training checkpoint lacks the optimizer's state.

    ## What it detects
    A checkpoint that counts epochs or steps, and so is meant for going on, but holds no optimizer;
    more so if the run was resumed. The optimizer may stand in another file of the run.

    ## Why it matters
    A run that continues from weights alone is another run: the moments of Adam start from zero and
    the loss jumps.

    ## What to do
    Save `optimizer.state_dict()`, the scheduler and the scaler beside the model.

    ## When it is wrong
    A file that is only meant for evaluation may carry its epoch for information. Bare state dicts
    and files called "best" or "final" are left alone unless the run was resumed.
    """
    held = {s.artifact: s.value for s in run.config.settings if s.key == HAS_OPTIMIZER}
    if not run.checkpoints or True in held.values():
        return
    counters = [s for s in _counters(run) if s.artifact in held and not _is_for_use(s)]
    resumed = _resumed(run)
    if not counters and not resumed:
        return
    yield _finding(run.checkpoints[-1], counters, resumed)


def _finding(
    latest: Architecture, counters: list[Setting], resumed: tuple[Evidence, ...]
) -> Finding:
    strength = Strength.MODERATE if counters else Strength.WEAK
    name = _name(latest.artifact)
    lacking = Evidence(
        f"{name} holds {len(latest.tensors)} tensors of a model and no optimizer", latest.artifact
    )
    counted = tuple(cite_setting(s) for s in counters[:2])
    purpose = "though the run was resumed" if resumed else "though it counts the training"
    return Finding(
        claim=f"The checkpoint {name} holds no optimizer state, {purpose}",
        strength=strength,
        evidence=(lacking, *counted, *resumed),
        suggests={"incomplete-checkpoint": strength},
    )


def _name(artifact: str) -> str:
    return artifact.replace("\\", "/").rsplit("/", 1)[-1]


def _is_for_use(setting: Setting) -> bool:
    return _FOR_USE.search(_name(setting.artifact)) is not None


def _counters(run: Run) -> list[Setting]:
    return [s for s in run.config.settings if s.key in ("checkpoint.epoch", "checkpoint.step")]


def _resumed(run: Run) -> tuple[Evidence, ...]:
    return tuple(cite_event(e) for e in run.events if e.kind == "resume")[:1]


_MODEL = Architecture((Tensor("fc.weight", (10, 4), "float32"),), "ckpt_3.pt", epoch=3)


def _example(name: str, settings: Mapping[str, object], *events: Event) -> Run:
    model = replace(_MODEL, artifact=name)
    made = tuple(Setting(k, v, name, k) for k, v in settings.items())
    run = make_run(architecture=model, events=events)
    return replace(run, checkpoints=(model,), config=replace(run.config, settings=made))


_EPOCH = {"checkpoint.epoch": 3, "checkpoint.has_optimizer": False}
_RESUME = Event("resume", "Resuming from ckpt_3.pt", "train.log", "line 4", step=300)

FIRES = {
    "an epoch and no optimizer": _example("ckpt_3.pt", _EPOCH),
    "resumed from weights alone": _example("weights.pt", {}, _RESUME),
}

SILENT = {
    "near miss: a bare state dict for inference": _example("model.pt", {}),
    "near miss: the best model with its epoch": _example("best.pt", _EPOCH),
    "the optimizer is there": _example("ckpt_3.pt", {**_EPOCH, "checkpoint.has_optimizer": True}),
}
