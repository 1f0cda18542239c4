from traindx.analysis.recordings.repeated_evaluations import changed_examples
from traindx.analysis.recordings.traces import per_process
from traindx.examples import recorded
from traindx.model.recording import Epoch, Loader, Place, Process, Summary
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "augmentation-in-validation"


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """The same validation examples have other values in every pass.

    ## What it detects
    A loader that nothing is trained on and that reads in order: in every pass its first batch has
    the same labels, and inputs of another mean and spread.

    ## Why it matters
    Something random changes the examples. The metric differs from pass to pass and is lower than
    the model deserves; the best checkpoint is chosen by luck.

    ## What to do
    Give validation its own transforms, or its own collate function: resize, centre crop, normalise,
    nothing random.

    ## When it is wrong
    Test-time augmentation. Two views of an example, or a noisy input beside the clean one, are the
    task itself and are left alone.
    """
    for changed in changed_examples(process):
        (first, before), (last, after) = changed.passes[0], changed.passes[-1]
        yield finding(
            f"Validation examples change from pass to pass: the same {before.shape[0]} labels "
            f"came with {len(changed.passes)} different inputs",
            CAUSE,
            *(
                cite_record(
                    process,
                    e.line,
                    f"at step {e.step} the first batch has mean "
                    f"{s.mean:.6g} and standard deviation {s.std:.6g}",
                    step=e.step,
                )
                for e, s in ((first, before), (last, after))
            ),
            place=changed.loader.place,
        )
        return


_LABELS = Summary("1", (32,), "int64", "cpu", 0, 9, 4.5, 2.9)


def _run(*batches: tuple[Summary, ...], sampler: str = "SequentialSampler") -> Run:
    place = Place("train.py", 9, "", "val = DataLoader(held_out, batch_size=32)")
    loaders = (
        Loader(1, 0, "Digits", 6000, 60, 32, "RandomSampler", True),
        Loader(2, 1, "Digits", 320, 10, 32, sampler, sampler != "SequentialSampler", place=place),
    )
    trained = [Epoch(20 + i, 0, 60, 60 * i, trained=60) for i in range(len(batches))]
    judged = [Epoch(40 + i, 1, 10, 60 * i, first=b) for i, b in enumerate(batches)]
    return recorded(Process(loaders=loaders, epochs=(*trained, *judged)))


def _images(shift: float, name: str = "0") -> Summary:
    return Summary(name, (32, 1, 28, 28), "float32", "cpu", 0, 1, 0.13 + shift, 0.31 - shift / 2)


def _batches(*parts: Summary, clean: tuple[Summary, ...] = ()) -> list[tuple[Summary, ...]]:
    return [(p, *clean) for p in parts]


_SHIFTED = (_images(0.0), _images(0.004), _images(-0.002))
_TARGETS = Summary("target", (32, 1), "float32", "cpu", -2, 2, 0.1, 1.0)

FIRES = {
    "images that are cropped at random": _run(*_batches(*_SHIFTED, clean=(_LABELS,))),
    "two passes of a regression": _run(*_batches(*_SHIFTED[:2], clean=(_TARGETS,))),
}

SILENT = {
    "the same images": _run(*_batches(*[_images(0.0)] * 3, clean=(_LABELS,))),
    "near miss: a shuffled loader": _run(
        *_batches(*_SHIFTED, clean=(_LABELS,)), sampler="RandomSampler"
    ),
    "near miss: noise to be taken away": _run(
        *_batches(*_SHIFTED, clean=(_images(0.0, "clean"), _LABELS))
    ),
    "near miss: fresh examples, with other labels": _run(
        *((s, Summary("1", (32,), "int64", "cpu", 0, 9, 4.5 + i, 2.9))
          for i, s in enumerate(_SHIFTED))
    ),
    "near miss: two views": _run(
        *((s, _images(0.1 * i, "2"), _LABELS) for i, s in enumerate(_SHIFTED))
    ),
    "near miss: one evaluation": _run((_SHIFTED[0], _LABELS)),
}  # fmt: skip
