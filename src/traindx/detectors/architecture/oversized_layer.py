import re

from traindx.examples import Architecture, Tensor, make_run
from traindx.registry import Evidence, Findings, Run, Strength, detector, finding

SHARE = 0.9  # VGG's first fully connected layer has 0.74 and is sound
SMALLEST = 1_000_000  # parameters; in a small model nobody minds
LAYERS = 4  # others with weights; a perceptron on a wide input is lopsided by nature
_TABLE = re.compile(r"embed|(?:^|\.)w[tp]e(?:\.|$)|lookup|codebook|table|memory|queue", re.I)


@detector(needs=("architecture",), suggests=("parameter-imbalance",))
def check(run: Run) -> Findings:
    """One layer holds nearly all parameters.

    ## What it detects
    A single weight matrix with nine tenths or more of the parameters of a model of several layers;
    embeddings are judged by their own rule.

    ## Why it matters
    Typically a flatten feeds a fully connected layer: memory and overfitting come from there while
    the other layers can learn little.

    ## What to do
    Pool before the flatten, or narrow what feeds the layer.

    ## When it is wrong
    It is a hint about design, never a fault by itself.
    """
    architecture = run.architecture
    if architecture is None:
        return
    weights = [
        t for t in architecture.tensors if len(t.shape) > 1 and not t.statistics.get("alias")
    ]
    total = sum(t.size for t in weights)
    if len(weights) <= LAYERS or total < SMALLEST:
        return
    largest = max(weights, key=lambda t: t.size)
    share = largest.size / total
    if share < SHARE or _TABLE.search(largest.name):
        return
    says = f"{largest.name} {largest.shape}: {largest.size:,} of {total:,} weights"
    where = Evidence(says, architecture.artifact, largest.name, values={"share": share})
    yield finding(
        f"One layer, {largest.name}, holds {100 * share:.0f} % of the parameters",
        {"parameter-imbalance": Strength.WEAK},
        where,
        strength=Strength.WEAK,
        is_symptom=False,
    )


def _example(*last: tuple[int, int], name: str = "fc1") -> Run:
    convolutions = [Tensor(f"conv{i}.weight", (32, 32, 3, 3)) for i in range(4)]
    dense = [Tensor(f"{name if i == 0 else 'fc'}.weight", shape) for i, shape in enumerate(last)]
    return make_run(architecture=Architecture((*convolutions, *dense), "model.pt"))


FIRES = {"a fully connected layer behind a flatten": _example((512, 100_352), (10, 512))}

SILENT = {
    "near miss: a VGG-like share": _example((512, 1568), (1024, 512), (10, 1024)),
    "near miss: an embedding": _example((100_000, 512), (10, 512), name="embedding"),
    "near miss: a perceptron on a wide input": make_run(
        architecture=Architecture(
            (Tensor("0.weight", (1024, 3072)), Tensor("2.weight", (10, 1024))), "model.pt"
        )
    ),
}
