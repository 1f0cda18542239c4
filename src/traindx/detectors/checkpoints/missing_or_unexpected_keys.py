"""A state dict's keys were not the model's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx.analysis.errors.checkpoint_messages import (
    MISSING_KEYS,
    UNEXPECTED_KEYS,
    UNMATCHED_KEYS,
    quoted,
)
from traindx.analysis.errors.culprits import Culprit
from traindx.analysis.errors.messages import KnownError, Table, finding, known_error, read
from traindx.analysis.errors.written_calls import failing_calls
from traindx.examples import make_failed_run
from traindx.model.findings import Finding
from traindx.model.run import Run
from traindx.registry import detector

CONTAINERS = frozenset(
    {"state_dict", "model", "model_state_dict", "optimizer", "epoch", "optimizer_state_dict", "net",
     "state", "args", "config", "global_step"}
)  # fmt: skip
ORIGINS = {
    "module.": "saved from DataParallel or DistributedDataParallel",
    "_orig_mod.": "saved from a model that torch.compile wraps",
    "model.": "saved from a Lightning or wrapper module",
}


@detector(needs=("failure",), suggests=("state-dict-key-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """`load_state_dict` finds other keys than the model has.

    ## What it detects
    "Missing key(s) in state_dict" and "Unexpected key(s)", with their numbers, and what explains
    them: a prefix (`module.`, `_orig_mod.`, `model.` or any other) that all of them share, or a
    whole training state given in place of the weights.

    ## Why it matters
    `strict=False` silences it and leaves layers at random values.

    ## What to do
    Strip or add the prefix, or take the weights out of the container.

    ## When it is wrong
    Where only some keys differ, the architecture has changed and no renaming helps.
    """
    known = known_error(run, UNMATCHED_KEYS)
    if known is None:
        return
    missing, unexpected = (_keys(known, table) for table in (MISSING_KEYS, UNEXPECTED_KEYS))
    if not missing and not unexpected:
        return
    reason, prefix = _reason(missing, unexpected)
    counts = {"missing": str(len(missing)), "unexpected": str(len(unexpected))}
    culprit = _culprit(known, prefix) if prefix else None
    yield finding(known, known.claim(reason=reason, **counts), culprit=culprit)


def _keys(known: KnownError, table: Table) -> list[str]:
    found = read(known.failure.message, table)
    return quoted(found[1]["keys"]) if found is not None else []


def _culprit(known: KnownError, prefix: str) -> Culprit | None:
    for call in failing_calls(known.run, known.failure, "load_state_dict"):
        if call.arguments:
            state = call.arguments[0]
            text = f'{{k.removeprefix("{prefix}"): v for k, v in {state}.items()}}'
            says = f"the keys are loaded with {prefix}"
            return call.blamed(says, call.with_first_argument(text), as_a_whole=True)
    return None


def _reason(missing: Sequence[str], unexpected: Sequence[str]) -> tuple[str, str]:
    """What turns one set of keys into the other, in words, and the prefix in the file if any."""
    if CONTAINERS & set(unexpected):
        named = ", ".join(sorted(CONTAINERS & set(unexpected)))
        return f": the file is a whole training state ({named}), the weights are one part of it", ""
    prefix = _prefix(unexpected, missing)
    if prefix:
        origin = ORIGINS.get(prefix, "")
        return (
            f": the file's keys begin with {prefix} {f'({origin})' if origin else ''}".rstrip(),
            prefix,
        )
    prefix = _prefix(missing, unexpected)
    if prefix:
        return f": the model's keys begin with {prefix}, which the file's lack", ""
    if not unexpected:
        return f", such as {missing[0]}: the model has layers that the file does not know", ""
    if not missing:
        return f", such as {unexpected[0]}: the file has layers that the model does not know", ""
    return f": {missing[0]} is wanted, {unexpected[0]} is there", ""


def _prefix(longer: Sequence[str], shorter: Sequence[str]) -> str:
    """The prefix with which all of the longer keys stand for the shorter ones."""
    if not longer or not shorter:
        return ""
    first = next((k for k in longer if k.endswith("." + shorter[0])), "")
    prefix = first[: len(first) - len(shorter[0])] if first else ""
    known = set(longer)
    shares = sum(prefix + k in known for k in shorter) / len(shorter) if prefix else 0.0
    return prefix if shares > 0.9 else ""


_ERROR = (
    "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
    '"fc.weight", "fc.bias". \n\tUnexpected key(s) in state_dict: "module.fc.weight", '
    '"module.fc.bias". '
)
_CODE = "model.load_state_dict(state)"

FIRES = {
    "a prefix": make_failed_run(_ERROR, _CODE, sources={"t.py": f"{_CODE}\n"}),
    "a whole training state": make_failed_run(
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
        '"fc.weight". \n\tUnexpected key(s) in state_dict: "epoch", "model_state_dict". '
    ),
}

SILENT = {
    "near miss: shapes only": make_failed_run(
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: "
        "copying a param with shape torch.Size([1000, 2048]) from checkpoint, the shape in current "
        "model is torch.Size([10, 2048])."
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
