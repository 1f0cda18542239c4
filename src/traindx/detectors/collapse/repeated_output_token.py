from dataclasses import replace

from traindx.analysis.curves import cycle_of
from traindx.analysis.metrics.text_samples import cite_text
from traindx.examples import TextSample, make_run
from traindx.registry import Findings, Run, Strength, detector, finding

LATE = 3  # the last third counts: every language model begins with repetition
FEWEST = 2  # samples; one alone may be chance or a prompt that asks for it
CERTAIN = 3
MOST = 0.6  # of the late samples; greedy decoding of a sound model loops now and then


@detector(needs=("samples",), suggests=("repetition-collapse", "embedding-dominated-model"))
def check(run: Run) -> Findings:
    """Sampled outputs repeat one token or a short cycle.

    ## What it detects
    Among the latest logged outputs of the model most end in one token, or in a cycle of a few words
    or characters, that is repeated at least four times and fills most of the text.

    ## Why it matters
    The model answers every input alike. Its loss may have fallen all the same, for frequent tokens
    are easily learnt.

    ## What to do
    Sample with temperature 1 in place of greedy decoding. If it still repeats, check that labels
    are shifted by one, and count parameters: a body that is small beside its embeddings learns
    frequencies only.

    ## When it is wrong
    Greedy decoding makes small sound models loop; outputs that should repeat (a padded sequence, a
    drum pattern) look the same.
    """
    samples = [s for s in run.samples if s.text.strip()]
    late = samples[-max(FEWEST, -(-len(samples) // LATE), min(len(samples), CERTAIN)) :]
    looped = [(s, unit) for s in late if (unit := cycle_of(s.text))]
    if len(looped) < FEWEST or len(looped) < MOST * len(late):
        return
    units = {unit for _, unit in looped}
    is_certain = len(looped) >= CERTAIN
    last = looped[-1]
    same = f"{last[1]!r} over and over" if len(units) == 1 else "one token or a short cycle"
    steps = [s.step for s, _ in looped if s.step is not None]
    yield finding(
        f"{len(looped)} of the last {len(late)} sampled outputs repeat {same}",
        {
            "repetition-collapse": Strength.STRONG if is_certain else Strength.MODERATE,
            "embedding-dominated-model": Strength.MODERATE if is_certain else Strength.WEAK,
        },
        *(cite_text(sample) for sample, _ in looped[-3:]),
        strength=Strength.STRONG if is_certain else Strength.MODERATE,
        onset=min(steps, default=None),
    )


def _example(*texts: str) -> Run:
    made = (TextSample(t, "samples.log", f"line {i}", float(i)) for i, t in enumerate(texts, 1))
    return replace(make_run(), samples=tuple(made))


FIRES = {
    "colons whatever the prompt": _example("::::", "hello::::::::", "::::::::::::"),
    "one word": _example(
        "the cat sat on a mat", "the the the the the the", "a the the the the the"
    ),
    "a cycle of two words": _example(*["I am " * 10] * 4),
}

SILENT = {
    "varied text": _example("the cat sat on the mat", "a dog ran away", "it rained all day"),
    "near miss: repetitive at first, then fluent": _example(
        *["the " * 20] * 4, *["once upon a time there was a king", "he had three sons"] * 4
    ),
    "near miss: short answers": _example("4", "no", "yes", "11", "B", "0000"),
    "near miss: indented code": _example(
        *["def f(x):\n        if x:\n            return x\n        return 0"] * 3
    ),
    "near miss: one of many loops": _example(*["a quiet evening by the sea"] * 8, "no " * 9),
}
