from traindx.analysis.checkpoints import constant_matrices
from traindx.examples import with_checkpoints
from traindx.model.run import Architecture, Tensor
from traindx.registry import Evidence, Findings, Run, Strength, detector, finding

SHOWN = 4


@detector(needs=("checkpoint",), suggests=("bad-initialisation",))
def check(run: Run) -> Findings:
    """Units of a hidden layer have equal weights.

    ## What it detects
    A hidden weight matrix all of whose rows are equal, or a model most of whose matrices are zero.

    ## Why it matters
    Units with equal weights get equal gradients and stay copies of each other: the layer has one
    unit, however wide it is. Two zero layers in a row pass no gradient at all.

    ## What to do
    Look for `zeros`, `ones`, `full` or `constant_` where the weights are made; PyTorch's defaults
    are sound.

    ## When it is wrong
    Zeros and constants are usual for norms, layer scales, adapters (LoRA B), adaLN, gates,
    positions and last layers; those are left alone, and so are depthwise filters.
    """
    for latest in run.checkpoints[-1:]:
        tensors, is_equal = constant_matrices(latest)
        if not tensors:
            return
        evidence = []
        for t in tensors[:SHOWN]:
            low, high = t.statistics.get("min", 0.0), t.statistics.get("max", 0.0)
            says = f"{t.name} has {t.shape[0]} equal rows, with values from {low:.4g} to {high:.4g}"
            values = {"min": low, "max": high}
            evidence.append(Evidence(says, latest.artifact, t.name, values=values))
        count = f"{len(tensors)} weight matri{'x' if len(tensors) == 1 else 'ces'}"
        what = "with identical rows" if is_equal else "with only zeros"
        strength = Strength.STRONG if is_equal else Strength.MODERATE
        yield finding(
            f"The last checkpoint has {count} {what}, such as {tensors[0].name}",
            {"bad-initialisation": strength},
            *evidence,
            strength=strength,
        )


def _tensor(name: str, *shape: int, equal: bool = False, norm: float = 3.0) -> Tensor:
    spread = {"min": 0.1, "max": 0.3} if norm else {"min": 0.0, "max": 0.0}
    figures = {"equal_rows": float(equal), "norm": norm, "nan": 0.0, **spread}
    return Tensor(name, shape, "float32", figures)


def _example(*tensors: Tensor) -> Run:
    return with_checkpoints(Architecture(tensors, "model.pt"))


_HEAD = _tensor("head.weight", 10, 64)

FIRES = {
    "a hidden layer of copies": _example(_tensor("fc1.weight", 64, 32, equal=True), _HEAD),
    "nothing but zeros": _example(
        _tensor("a.weight", 64, 32, equal=True, norm=0.0),
        _tensor("b.weight", 10, 64, equal=True, norm=0.0),
    ),
}

SILENT = {
    "near miss: LoRA B and a zero last layer": _example(
        _tensor("q.lora_A.weight", 8, 64),
        _tensor("q.lora_B.weight", 64, 8, equal=True, norm=0.0),
        _tensor("fc.weight", 64, 64),
        _tensor("head.weight", 10, 64, equal=True, norm=0.0),
    ),
    "near miss: zero-initialised residual branches": _example(
        *(_tensor(f"block{i}.fc1.weight", 64, 64) for i in range(3)),
        *(_tensor(f"block{i}.fc2.weight", 64, 64, equal=True, norm=0.0) for i in range(3)),
        _HEAD,
    ),
    "near miss: a depthwise blur": _example(
        _tensor("pool.weight", 64, 1, 3, 3, equal=True), _tensor("fc.weight", 64, 64), _HEAD
    ),
    "a sound model": _example(_tensor("fc1.weight", 64, 32), _HEAD),
}
