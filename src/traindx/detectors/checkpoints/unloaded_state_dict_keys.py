"""Weights were loaded by name, and hardly a name fitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx.analysis.recordings.traces import told_once
from traindx.examples import recorded, watched, weights
from traindx.model.findings import Finding, Strength, at, cite_record
from traindx.model.recording import Loaded, Process
from traindx.model.run import Run
from traindx.registry import detector

CAUSE = "state-dict-key-mismatch"
RENAMED = 0.5  # of the missing names
FEW = 0.1  # of all names: as many as a new head has


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """Loading weights into a module changed little or nothing, since the names differ.

    ## What it detects
    A `load_state_dict` that did not fail, as with `strict=False`, where no name fitted; or where
    most names that the module lacks are among those that it was given, with a prefix more or less.
    Of several loads into modules of one kind the last counts.

    ## Why it matters
    Training starts from random weights and nobody is told. It looks like fine-tuning that learns
    slowly and ends below what was promised.

    ## What to do
    Strip or add the prefix (`module.`, `_orig_mod.`, `model.`), then load with `strict=True`, or
    look at the missing names that the call returns.

    ## When it is wrong
    A new head on a loaded body lacks a few names, and adapters lack all names of the frozen part
    but bring none that are unknown: nothing is said of either.
    """
    yield from told_once(run, _look)


def _look(process: Process) -> Iterator[Finding]:
    for record in {load.module: load for load in process.loads}.values():
        whole = record.matched + record.missing
        is_nothing = not record.matched and record.missing > 0 < record.unexpected
        is_renamed = record.renamed >= RENAMED * record.missing > RENAMED * FEW * whole
        if not is_nothing and not is_renamed:
            continue
        lacks, brings = ", ".join(record.lacks), ", ".join(record.brings)
        says = f"{record.matched} names fit; it lacks {lacks}, and is given {brings}"
        yield Finding(
            claim=f"Of {whole} weights of {record.module}, {record.missing} were not loaded: they "
            "have other names in the checkpoint",
            strength=Strength.STRONG,
            evidence=(cite_record(process, record.line, says, missing=record.missing),),
            shows=CAUSE,
            is_symptom=True,
            onset=float(record.step),
            location=at(record.place),
        )


def _process(*loads: Loaded) -> Process:
    return replace(watched(*weights("0.weight")), loads=loads)


def _load(matched: int, missing: int, unexpected: int, renamed: int = 0) -> Loaded:
    lacks, brings = ("conv1.weight",) * missing, ("module.conv1.weight",) * unexpected
    return Loaded(5, 0, "ResNet", matched, missing, unexpected, renamed, lacks[:1], brings[:1])


FIRES = {
    "a prefix": recorded(_process(_load(0, 60, 60, 60))),
    "other names altogether": recorded(_process(_load(0, 60, 12))),
    "a prefix in a part": recorded(_process(_load(30, 30, 30, 30))),
}

SILENT = {
    "everything fits": recorded(_process(_load(60, 0, 0))),
    "near miss: a new head": recorded(_process(_load(58, 2, 2))),
    "near miss: a new head in another place": recorded(_process(_load(58, 2, 2, 2))),
    "near miss: adapters into a frozen model": recorded(_process(_load(12, 200, 0))),
    "near miss: a body out of a larger model": recorded(_process(_load(60, 0, 20))),
    "near miss: tried again with the names put right": recorded(
        _process(_load(0, 60, 60, 60), _load(60, 0, 0))
    ),
}
