from collections.abc import Sequence
from dataclasses import replace

from traindx.analysis.errors.memory_sizes import memory_words
from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.training.claims import program_of, source_text
from traindx.analysis.program.training.hoards import hoard_of
from traindx.analysis.recordings.memory_growth import (
    growing_memory,
    has_growing_graph,
    memory_of,
    whole_epochs,
)
from traindx.examples import recorded, sampled, with_source
from traindx.model.recording import Counts, Epoch, Process
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

KINDS = {"rss_bytes": "Host memory", "device_bytes": "GPU memory"}


@detector(needs=("recording",), suggests=("host-memory-growth", "graph-kept-alive"))
def check(run: Run) -> Findings:
    """Memory grows steadily over the steps.

    ## What it detects
    Samples of the memory in use that rise by a fifth and 200 MB or more after the first fifth of
    the steps, in every third of the rest about as fast: of the host, or of the device.

    ## Why it matters
    The run ends when the memory does, mostly at night. If the device's memory grows, some tensor
    that carries a graph is kept from step to step.

    ## What to do
    Keep numbers in place of tensors (`total += loss.item()`), detach what is carried to the next
    step, bound caches and lists.

    ## When it is wrong
    A cache that fills during the first epoch grows in the same way until it is full, and so do the
    pages of a memory-mapped file: so the samples after the first whole epoch count, and without
    one it is a remark only, unless the source has a list that the loop adds tensors to for ever.
    """
    hoard = hoard_of(program_of(run)) if run.sources else None
    for process in run.recording.processes if run.recording is not None else ():
        found = list(_grown(process, hoard))
        yield from found
        if found:
            return  # the other ranks do the same


def _grown(process: Process, hoard: ProgramEvent | None) -> Findings:
    is_chained, has_epoch = has_growing_graph(process), bool(whole_epochs(process))
    for field, words in KINDS.items():
        samples = growing_memory(process, field)
        if not samples:
            continue
        (first, low), (last, high) = ((s, memory_of(s, field)) for s in (samples[0], samples[-1]))
        pace = memory_words((high - low) / max(1.0, float(last.step - first.step)))
        # without an epoch to compare with, a list that only grows tells a hoard from a cache
        kept = hoard if not has_epoch and field == "rss_bytes" else None
        on_device = field == "device_bytes" or is_chained
        is_sure = has_epoch or on_device or kept is not None
        strength = Strength.STRONG if is_sure else Strength.WEAK
        causes = {"graph-kept-alive": strength if on_device else Strength.WEAK}
        causes |= {} if on_device else {"host-memory-growth": strength}
        ends = [
            f"{memory_words(low)} at step {first.step}",
            f"{memory_words(high)} at step {last.step}",
        ]
        evidence = [
            cite_record(process, s.line, e, step=s.step)
            for s, e in zip((first, last), ends, strict=True)
        ]
        if kept is not None:
            says = f"`{source_text(kept)}` runs at every step, and nothing is ever removed"
            evidence.append(kept.cite(says))
        yield finding(
            f"{words} grows by {pace} per step, from {memory_words(low)} to {memory_words(high)}",
            causes,
            *evidence,
            strength=strength,
            is_symptom=is_sure,
            onset=first.step,
            place=kept.location if kept is not None else None,
        )


_GB = float(1 << 30)


def _run(
    rss: Sequence[float], *, passes: int = 4, nodes: Sequence[int] = (), device: bool = False,
    at: Sequence[int] = (),
) -> Run:  # fmt: skip
    process = sampled(
        len(rss), step=lambda i: at[i] if at else 10 * i,
        graph_nodes=lambda i: nodes[i] if nodes else 12,
        **{"device_bytes" if device else "rss_bytes": lambda i: rss[i]},
    )  # fmt: skip
    steps = max(at) + 10 if at else 10 * len(rss)
    each = steps // max(1, passes)
    epochs = tuple(Epoch(5, 0, each, (i + 1) * each, trained=each) for i in range(passes))
    return recorded(replace(process, epochs=epochs, counts=Counts(99, steps=steps)))


_LINE = [_GB * (1 + 0.02 * i) for i in range(30)]
_LEVEL = [_GB * (1 + 0.5 * (1 - 0.8**i)) for i in range(30)]

_SPARSE = (0, 1, 2, 3, 5, 8, 12, 18, 27, 41, 62, 93, 141)  # ever fewer samples in a short run

_HOARD = """
import torch
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
seen = []
for step in range(1000):
    batch = buffer.sample(64)
    loss = net(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append({kept})
"""


FIRES = {
    "a list in the source": with_source(
        _run(_LINE, passes=0), _HOARD.replace("{kept}", "batch.clone()")
    ),
    "a short run": _run([_GB * (1 + 0.01 * s) for s in _SPARSE], at=_SPARSE),
    "a list that grows": _run(_LINE),
    "on the device": _run(_LINE, device=True),
    "no epoch to compare with: a remark": _run(_LINE, passes=0),
    "with the graph": _run(_LINE, nodes=[12 + 60 * i for i in range(30)]),
}

SILENT = {
    "flat": _run([_GB] * 30),
    "near miss: a cache that fills": _run(_LEVEL),
    "near miss: it fills in the first epoch": _run(
        [*[_GB * (1 + 0.1 * i) for i in range(8)], *[1.7 * _GB] * 22]
    ),
    "near miss: a short run that fills a cache": _run(
        [_GB * (1 + min(1.0, 0.01 * s)) for s in _SPARSE], at=_SPARSE
    ),
    "near miss: one step up": _run([_GB] * 20 + [1.5 * _GB] * 10),
    "near miss: up and down": _run([_GB * (1 + 0.1 * (i % 10)) for i in range(30)]),
    "near miss: larger graphs, but no more memory": _run(
        [_GB] * 30, nodes=[12 + 60 * i for i in range(30)]
    ),
    "near miss: too little to matter": _run([_GB / 10 * (1 + 0.02 * i) for i in range(30)]),
}
