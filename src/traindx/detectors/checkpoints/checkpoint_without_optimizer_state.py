import re
from collections.abc import Mapping
from dataclasses import replace

from traindx.examples import make_run
from traindx.model.findings import Evidence, cite_event, cite_setting
from traindx.model.run import Architecture, Event, Setting, Tensor, file_name
from traindx.registry import Finding, Findings, Run, Strength, detector, finding

HAS_OPTIMIZER = "checkpoint.has_optimizer"
# files that are kept for use, not for going on
_FOR_USE = re.compile(r"best|final|release|infer|deploy|export|ema|pretrain|slim", re.IGNORECASE)


@detector(needs=("checkpoint",), suggests=("incomplete-checkpoint",))
def check(run: Run) -> Findings:
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
    counters = [
        s
        for s in run.config.settings
        if s.key in ("checkpoint.epoch", "checkpoint.step") and s.artifact in held
        and not _FOR_USE.search(file_name(s.artifact))
    ]  # fmt: skip
    resumed = tuple(cite_event(e) for e in run.events if e.kind == "resume")[:1]
    if counters or resumed:
        yield _finding(run.checkpoints[-1], counters, resumed)


def _finding(
    latest: Architecture, counters: list[Setting], resumed: tuple[Evidence, ...]
) -> Finding:
    strength = Strength.MODERATE if counters else Strength.WEAK
    name = file_name(latest.artifact)
    lacking = Evidence(
        f"{name} has {len(latest.tensors)} model tensors and no optimizer state", latest.artifact
    )
    counted = tuple(cite_setting(s) for s in counters[:2])
    purpose = "but the run was resumed" if resumed else "but has an epoch or step counter"
    return finding(
        f"The checkpoint {name} has no optimizer state, {purpose}",
        {"incomplete-checkpoint": strength},
        lacking,
        *counted,
        *resumed,
        strength=strength,
        is_symptom=False,
    )


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
