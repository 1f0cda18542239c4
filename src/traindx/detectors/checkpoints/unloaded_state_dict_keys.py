from dataclasses import replace

from traindx.analysis.recordings.traces import per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Loaded, Process
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "state-dict-key-mismatch"
RENAMED = 0.5  # of the missing names
FEW = 0.1  # of all names: as many as a new head has


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """Loading weights into a module changed little or nothing, since the names differ.

    ## What it detects
    A `load_state_dict` that did not fail, as with `strict=False`, where no key matched; or where
    most missing keys are among the unexpected ones, with a prefix more or less.
    Of several loads into modules of one kind the last counts.

    ## Why it matters
    Training starts from random weights without a warning. It looks like fine-tuning that learns
    slowly and ends below expectation.

    ## What to do
    Strip or add the prefix (`module.`, `_orig_mod.`, `model.`), then load with `strict=True`, or
    look at the missing names that the call returns.

    ## When it is wrong
    A new head on a loaded body lacks a few names, and adapters lack all names of the frozen part
    but bring none that are unknown: nothing is said of either.
    """
    for record in {load.module: load for load in process.loads}.values():
        whole = record.matched + record.missing
        is_nothing = not record.matched and record.missing > 0 < record.unexpected
        is_renamed = record.renamed >= RENAMED * record.missing > RENAMED * FEW * whole
        if not is_nothing and not is_renamed:
            continue
        lacks, brings = ", ".join(record.lacks), ", ".join(record.brings)
        says = f"{record.matched} keys match; missing: {lacks}; unexpected: {brings}"
        claim = (
            f"{record.missing} of {whole} weights of {record.module} were not loaded, because "
            "their keys differ in the checkpoint"
        )
        cited = cite_record(process, record.line, says, missing=record.missing)
        yield finding(claim, CAUSE, cited, onset=record.step, place=record.place)


def _run(*loads: Loaded) -> Run:
    return recorded(replace(watched(*weights("0.weight")), loads=loads))


def _load(matched: int, missing: int, unexpected: int, renamed: int = 0) -> Loaded:
    lacks, brings = ("conv1.weight",) * missing, ("module.conv1.weight",) * unexpected
    return Loaded(5, 0, "ResNet", matched, missing, unexpected, renamed, lacks[:1], brings[:1])


FIRES = {
    "a prefix": _run(_load(0, 60, 60, 60)),
    "other names altogether": _run(_load(0, 60, 12)),
    "a prefix in a part": _run(_load(30, 30, 30, 30)),
}

SILENT = {
    "everything fits": _run(_load(60, 0, 0)),
    "near miss: a new head": _run(_load(58, 2, 2)),
    "near miss: a new head in another place": _run(_load(58, 2, 2, 2)),
    "near miss: adapters into a frozen model": _run(_load(12, 200, 0)),
    "near miss: a body out of a larger model": _run(_load(60, 0, 20)),
    "near miss: tried again with the names put right": _run(_load(0, 60, 60, 60), _load(60, 0, 0)),
}
