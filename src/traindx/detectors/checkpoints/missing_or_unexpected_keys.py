from traindx.analysis.errors.checkpoint_messages import (
    UNMATCHED_KEYS,
    unmatched_keys,
    why_unmatched,
)
from traindx.analysis.errors.messages import finding, known_error
from traindx.analysis.errors.written_calls import prefixed_load
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("state-dict-key-mismatch",))
def check(run: Run) -> Findings:
    """`load_state_dict` finds other keys than the model has.

    ## What it detects
    "Missing key(s) in state_dict" and "Unexpected key(s)", with their numbers, and what explains
    them: a prefix (`module.`, `_orig_mod.`, `model.` or any other) that all of them share, or a
    whole training state loaded in place of the weights.

    ## Why it matters
    `strict=False` silences it and leaves layers at random values.

    ## What to do
    Strip or add the prefix, or take the weights out of the container.

    ## When it is wrong
    Where only some keys differ, the architecture has changed and no renaming helps.
    """
    known = known_error(run, UNMATCHED_KEYS)
    missing, unexpected = unmatched_keys(known) if known is not None else ([], [])
    if known is not None and (missing or unexpected):
        reason, prefix = why_unmatched(missing, unexpected)
        counts = {"missing": str(len(missing)), "unexpected": str(len(unexpected))}
        culprit = prefixed_load(known, prefix) if prefix else None
        yield finding(known, known.claim(reason=reason, **counts), culprit=culprit)


_ERROR = (
    "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
    '"fc.weight", "fc.bias". \n\tUnexpected key(s) in state_dict: "module.fc.weight", '
    '"module.fc.bias". '
)
_CODE = "model.load_state_dict(state)"

FIRES = {
    "a prefix": failed(_ERROR, _CODE, sources={"t.py": f"{_CODE}\n"}),
    "a whole training state": failed(
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
        '"fc.weight". \n\tUnexpected key(s) in state_dict: "epoch", "model_state_dict". '
    ),
}

SILENT = {
    "near miss: shapes only": failed(
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: "
        "copying a param with shape torch.Size([1000, 2048]) from checkpoint, the shape in current "
        "model is torch.Size([10, 2048])."
    ),
    "another error": failed("KeyError: 'label'"),
}
