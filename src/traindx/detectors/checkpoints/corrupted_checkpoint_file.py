from traindx.examples import make_run
from traindx.model.run import Architecture, Event, Tensor, file_name
from traindx.registry import Findings, Run, cite_event, detector, finding

SHOWN = 5  # files; a full disk damages every later one in the same way


@detector(needs=("checkpoint",), suggests=("corrupt-checkpoint",))
def check(run: Run) -> Findings:
    """A checkpoint file is truncated or damaged.

    ## What it detects
    A file that breaks the rules of its own format: the directory at its end is missing, tensors
    reach beyond its data, a shard is absent, or something else (zeros, a web page, a git-lfs
    pointer) stands in its place.

    ## Why it matters
    It cannot be loaded, or loads with some of the weights lost.

    ## What to do
    Go back to the last whole checkpoint, and write to a temporary name that is renamed when done.

    ## When it is wrong
    A file that another process is still writing looks the same: read it again.
    """
    damaged: dict[str, list[Event]] = {}
    for event in run.events:
        if event.kind == "corrupt-checkpoint":
            damaged.setdefault(event.artifact, []).append(event)
    for artifact, events in list(damaged.items())[:SHOWN]:
        claim = f"The checkpoint file {file_name(artifact)} is corrupted"
        yield finding(claim, "corrupt-checkpoint", *(cite_event(e) for e in events))


_WHOLE = Architecture((Tensor("fc.weight", (10, 4), "float32"),), "model.pt")
_CUT = Event("corrupt-checkpoint", "it ends early: the zip directory is missing", "step_900.pt")

FIRES = {
    "the file ends early": make_run(events=[_CUT]),
    "a shard is missing": make_run(
        events=[Event("corrupt-checkpoint", "the shard a-2.safetensors is missing", "a.index.json")]
    ),
}

SILENT = {
    "near miss: a whole file that torch refuses for its objects": make_run(
        events=[Event("unloadable-checkpoint", "torch refuses it for argparse.Namespace", "a.pt")]
    ),
    "a whole checkpoint": make_run(architecture=_WHOLE),
    "another kind of damage": make_run(events=[Event("warning", "3 lines are no JSON", "a.jsonl")]),
}
