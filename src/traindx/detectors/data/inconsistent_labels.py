from dataclasses import replace

from traindx.analysis.recordings.loss_labels import has_duplicates, is_labelled_pair
from traindx.analysis.recordings.observations import has_learnt, processes_of
from traindx.examples import Loader, LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

CHANGED = 0.2  # of the examples that came again
MOSTLY = 0.5  # of them, where a pass over the data cannot be told
ENOUGH = 20  # examples that came again


@detector(needs=("recording",), suggests=("misaligned-labels",))
def check(run: Run) -> Findings:
    """Examples that came before come again with another label.

    ## What it detects
    Batches of one floating-point input and one integer label, of which examples with the very same
    values came before: a fifth or more of them now have another label.

    ## Why it matters
    Inputs and labels are out of step: shuffled apart, indexed by different orders, or made anew at
    random. The model can only learn the frequency of the classes.

    ## What to do
    Shuffle inputs and labels with one permutation; index both by the same `i` in `__getitem__`;
    look at a few examples with their labels.

    ## When it is wrong
    Data that hold the same example several times with honest disagreement end up here only if they
    do not show it within one pass. Labels that a method makes anew in every pass, as pseudo-labels
    are, change on purpose. Where the program makes its batches without a loader, nothing is said of
    a model that learns.
    """
    for process in processes_of(run):
        samples = [s for s in process.samples if is_labelled_pair(s)]
        same = sum(s.repeated for s in samples)
        other = sum(s.relabelled for s in samples)
        seen = same + other
        if seen < ENOUGH or other <= CHANGED * seen:
            continue
        if process.loaders and has_duplicates(process, samples):
            continue
        is_loose = not process.loaders  # the program makes its batches by itself
        if is_loose and (other <= MOSTLY * seen or has_learnt(process)):
            continue
        last = max((s for s in samples if s.relabelled), key=lambda s: s.relabelled)
        says = f"{other} of {seen} repeated examples have a different label than before"
        yield finding(
            f"Inputs and labels are misaligned: {says}",
            {"misaligned-labels": Strength.STRONG} if is_loose else {},
            cite_record(process, last.line, says, step=last.step, relabelled=other),
            shows=None if is_loose else "misaligned-labels",
            onset=next(s.step for s in samples if s.relabelled),
        )
        return


def _run(*seen: tuple[int, int], inputs: int = 1, dtype: str = "int64") -> Run:
    given = tuple(Summary(str(i), (32, 8), "float32") for i in range(inputs))
    batch = (*given, Summary("y", (32,), dtype))
    loss = LossInput("cross_entropy", "addmm", target=Summary("target", (32,), "int64"))
    process = sampled(
        len(seen), losses=(loss,), batch=batch, step=lambda i: 10 * i,
        repeated=lambda i: seen[i][0], relabelled=lambda i: seen[i][1],
    )  # fmt: skip
    loader = Loader(2, 0, "TensorDataset", 640, 20, 32, "RandomSampler", True)
    return recorded(replace(process, loaders=(loader,)))


FIRES = {"shuffled apart": _run((0, 0), (0, 0), (2, 18), (1, 20), (3, 16))}

SILENT = {
    "the same labels": _run((0, 0), (0, 0), (20, 0), (18, 0), (22, 0)),
    "near miss: a few examples that are noisy": _run((0, 0), (0, 0), (19, 1), (20, 2)),
    "near miss: pairs, with a label for both": _run((0, 0), (0, 0), (2, 18), (1, 20), inputs=2),
    "near miss: mixed targets": _run((0, 0), (0, 0), (2, 18), (1, 20), dtype="float32"),
    "near miss: the same example many times in one pass": _run((9, 9), (9, 9), (2, 18), (1, 20)),
    "few examples": _run((0, 0), (0, 0), (1, 3)),
}
