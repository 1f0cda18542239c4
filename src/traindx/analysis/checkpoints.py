"""What two checkpoints of a run have in common, and what changed between them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from traindx.model.findings import Evidence, Strength
from traindx.model.run import Architecture, Run, Tensor, as_number

GROWTH = 100.0  # times the norm; training from scratch grows weights a few times over
SMALLEST = 1e-3  # root mean square before; zero-initialised branches grow by any factor
# never trained by design: positions, filters, tables of constants, teachers, frozen helpers
_FIXED = re.compile(
    r"pos|rotary|inv_freq|freq|sin|cos|(?:^|\.)pe(?:\.|$)|mask|filt|blur|window|mel|stft|anchor|dfl"
    r"|teacher|target|ema|momentum|proto|queue|lpips|vgg|percept|running_|buffer|rel|index|tril",
    re.IGNORECASE,
)
_WRAPPERS = frozenset({"module", "model", "_orig_mod", "net", "network"})
SMALLEST_TABLE = 1000  # rows; a smaller one is no vocabulary
_TABLE = re.compile(r"embed|(?:^|\.)wte(?:\.|$)|tok_emb|lookup|(?:^|\.)shared\.weight$", re.I)
_OUTPUT = re.compile(r"lm_head|(?:^|\.)(?:output|decoder|generator|out)\.(?:\w+\.)?weight$", re.I)
_NO_TABLE = re.compile(r"pos|patch|time|rotary|norm|proj|user|item|categor|sparse_", re.I)
FEWEST_ROWS = 4  # rows and columns; smaller ones may be equal by chance or design
# filled with infinity on purpose: masks, observers that have seen nothing, running extremes
_BY_DESIGN = re.compile(
    r"mask|causal|tril|triu|cache|observer|min_val|max_val|amin|amax|best|queue|bias_table",
    re.IGNORECASE,
)
_LEARNT = re.compile(r"(?:^|[._])(?:weight|bias|gamma|beta|kernel|w|b|proj)(?:_\w{1,16})?$")
RUNNING = re.compile(r"running_(?:mean|var)$|moving_(?:mean|variance)$")
HALF = ("float16", "bfloat16")
MOST_ZERO = 0.5  # of the weight matrices; a zero branch here and there is a habit
# zero or constant by design: norms, scales, adapters, gates, positions, filters, last layers
_CONSTANT = re.compile(
    r"norm|(?:^|[._])(?:bn|ln|gn)\d*(?:[._]|$)|gamma|scale|lora|adapter|adaln|modulation|gate|router"
    r"|zero|pos|token|embed|mask|filt|blur|kernel|window|buffer|queue|proto|anchor|upsampl|temporal"
    r"|head|final|classifier|out(?:put)?(?:[._]|$|_proj)|proj_out|to_out|running_|rel|index|dfl",
    re.IGNORECASE,
)


def shared_matrices(before: Architecture, after: Architecture) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the weight matrices that both have in one shape: a bias may stay where it is."""
    known = {t.name: t for t in before.tensors}
    for new in after.tensors:
        old = known.get(new.name)
        is_float = new.dtype.startswith(("float", "bfloat"))
        if old is not None and is_float and len(new.shape) > 1 and old.shape == new.shape:
            yield old, new


def is_comparable(old: Tensor, new: Tensor) -> bool:
    """Tell whether the checksums of two states of a tensor can be compared."""
    is_alias = bool(new.statistics.get("alias")) or old.dtype != new.dtype
    counts = [t.statistics.get("count") for t in (old, new)]
    has_sums = all("checksum" in t.statistics for t in (old, new))
    return has_sums and not is_alias and counts[0] == counts[1]


def grown_matrices(
    before: Architecture, after: Architecture
) -> Iterator[tuple[Tensor, float, float]]:
    """Yield the matrices that outgrew a usual training, with their norms before and after."""
    for old, new in shared_matrices(before, after):
        norms = [t.statistics.get("norm", math.nan) for t in (old, new)]
        is_ordinary = norms[0] > SMALLEST * math.sqrt(max(1, old.size))
        if is_ordinary and math.isfinite(norms[1]) and norms[1] > GROWTH * norms[0]:
            yield new, norms[0], norms[1]


def moved_and_still(first: Architecture, last: Architecture) -> tuple[list[Tensor], list[Tensor]]:
    """The weight matrices that differ between two checkpoints, and those that do not."""
    moved: list[Tensor] = []
    still: list[Tensor] = []
    for old, tensor in shared_matrices(first, last):
        if _FIXED.search(tensor.name) or not is_comparable(old, tensor):
            continue
        if old.statistics["checksum"] != tensor.statistics["checksum"]:
            moved.append(tensor)
        elif not tensor.statistics.get("sampled") and tensor.statistics.get("norm", 0.0) > 0:
            still.append(tensor)
    return moved, still


def block_of(tensor: Tensor) -> str:
    """Return the part of the model that a tensor belongs to."""
    parts = [p for p in tensor.name.split(".")[:-1] if p not in _WRAPPERS]
    return parts[0] if parts else tensor.name


def vocabulary_tables(tensors: list[Tensor]) -> list[Tensor]:
    """The tables of a vocabulary, and the output matrix where it is one of its own."""
    flat = [t for t in tensors if len(t.shape) == 2 and t.shape[0] >= SMALLEST_TABLE]
    tables = [t for t in flat if _TABLE.search(t.name) and not _NO_TABLE.search(t.name)]
    shapes = {t.shape for t in tables}
    return tables + [t for t in flat if _OUTPUT.search(t.name) and t.shape in shapes]


def is_dense_matrix(tensor: Tensor) -> bool:
    """Tell whether a tensor is a weight matrix of enough rows, whose rows were compared."""
    if len(tensor.shape) < 2 or not tensor.dtype.startswith(("float", "bfloat")):
        return False
    if tensor.shape[0] < FEWEST_ROWS or tensor.shape[1] < FEWEST_ROWS:
        return False
    return "equal_rows" in tensor.statistics and not tensor.statistics.get("nan")


def is_broken(tensor: Tensor) -> bool:
    """Tell whether a tensor is NaN or infinite, and not by design."""
    nan, inf = tensor.statistics.get("nan", 0.0), tensor.statistics.get("inf", 0.0)
    if _BY_DESIGN.search(tensor.name):
        return False
    is_learnt = _LEARNT.search(tensor.name) or RUNNING.search(tensor.name)
    return nan > 0 or (inf > 0 and is_learnt is not None)


def cite_broken(tensor: Tensor, where: Architecture) -> Evidence:
    """Cite how many values of a tensor are NaN or infinite."""
    nan, inf = tensor.statistics.get("nan", 0.0), tensor.statistics.get("inf", 0.0)
    looked_at = tensor.statistics.get("count", float(tensor.size))
    says = f"{tensor.name} has {nan:.0f} NaN and {inf:.0f} infinite of {looked_at:.0f} values"
    return Evidence(says, where.artifact, tensor.name, values={"nan": nan, "inf": inf})


def last_sound(checkpoints: Sequence[Architecture], names: set[str]) -> Architecture | None:
    """Return the last checkpoint in which the named tensors were finite."""
    for checkpoint in reversed(checkpoints):
        same = [t for t in checkpoint.tensors if t.name in names and t.statistics]
        if same and not any(is_broken(t) for t in same):
            return checkpoint
    return None


def causes_of_unchanged(
    run: Run, still: list[Tensor], moved: list[Tensor], strength: Strength
) -> Mapping[str, Strength]:
    """Return why matrices may stand still: frozen, not in the optimizer, or in half precision."""
    suggests = {"frozen-parameters": strength, "parameters-not-in-optimizer": strength}
    key = "checkpoint.optimizer.parameters"
    held = next((s.value for s in run.config.settings if s.key == key), None)
    number = None if held is None else as_number(held)
    if number is not None and number >= len(run.checkpoints[-1].tensors):
        del suggests["parameters-not-in-optimizer"]  # the optimizer has them all
    if all(t.dtype in HALF for t in (*still, *moved)):
        suggests["half-precision-weights"] = Strength.WEAK
    return suggests


def constant_matrices(latest: Architecture) -> tuple[list[Tensor], bool]:
    """Return hidden weight matrices of equal rows, or else most matrices that are all zero.

    With it, whether the rows are equal and not zero.
    """
    matrices = [t for t in latest.tensors if is_dense_matrix(t)]
    judged = [t for t in matrices[:-1] if not _CONSTANT.search(t.name)]  # the last is the head
    equal = [t for t in judged if t.statistics["equal_rows"] == 1.0 and t.statistics["norm"] > 0]
    zero = [t for t in matrices if t.statistics["norm"] == 0]
    is_mostly_zero = len(zero) >= 2 and len(zero) > MOST_ZERO * len(matrices)
    return (equal, True) if equal else (zero if is_mostly_zero else [], False)
