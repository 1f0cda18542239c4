"""Facts of a run that make a remedy concrete: the user's own keys, values and sizes.

A function here returns only what the run tells; a cause's defaults say the rest in general words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil, isfinite, log, log10
from statistics import median
from typing import Any

import numpy as np

from traindx.analysis.program import project_of
from traindx.analysis.program.setting_places import place_of_setting
from traindx.causes.cause import Facts
from traindx.model.findings import Location
from traindx.model.run import Run, Setting, Tensor, as_number

Tailor = Callable[[Run], Facts]

EARLY_SAMPLES = 8
LARGE_STEP = 0.03  # of the weights' norm; healthy runs stay below from their first steps on
SECOND_OPINION = 1.5  # a logged peak this far above the configured rate is the rate in force
WARMUP_SHARE = 0.03  # of all steps; 1 to 5 % is usual
CLIP_OVER_MEDIAN = 2.0  # a clip at twice the ordinary norm leaves ordinary steps alone
LONGEST_QUOTE = 120

BATCH_SIZES = (
    "batch_size", "train_batch_size", "per_device_train_batch_size", "micro_batch_size",
    "batch_size_per_gpu", "batch",
)  # fmt: skip
CLIPS = (
    "max_grad_norm", "grad_clip", "gradient_clip_val", "clip_grad_norm", "clip_grad", "clip_norm",
    "grad_norm_clip", "gradient_clipping", "clip",
)  # fmt: skip
CLASS_COUNTS = ("num_classes", "n_classes", "num_labels", "nb_classes", "classes", "nclass")
PEAK = "the peak learning rate"
DROPOUTS = ("dropout", "dropout_rate", "drop_rate", "hidden_dropout_prob", "p_drop")
RUN_LENGTHS = ("max_steps", "total_steps", "num_training_steps", "max_iters", "num_steps")
WARMUPS = ("warmup_steps", "num_warmup_steps", "warmup_iters", "warmup_updates")
WORKERS = ("num_workers", "dataloader_num_workers", "n_workers", "workers")
ACCUMULATIONS = (
    "gradient_accumulation_steps", "accumulate_grad_batches", "accumulation_steps", "grad_accum",
    "accum_steps", "accum_iter",
)  # fmt: skip
SAVE_INTERVALS = ("save_steps", "save_every", "save_interval", "checkpoint_every", "ckpt_interval")
PRECISIONS = ("mixed_precision", "precision", "amp_dtype", "torch_dtype", "dtype")
WIDER = {
    "fp16": "bf16", "float16": "bfloat16", "half": "bfloat16", "torch.float16": "torch.bfloat16",
    "16": "bf16-mixed", "16-mixed": "bf16-mixed", "16-true": "bf16-true",
}  # fmt: skip

_RATE_IN_SOURCE = re.compile(
    r"""\b(lr|learning_rate)\s*=\s*(\d[\d.]*(?:[eE][+-]?\d+)?)
    |["']--(lr|learning[-_]rate)["'][^)\n]*\bdefault\s*=\s*(\d[\d.]*(?:[eE][+-]?\d+)?)""",
    re.VERBOSE,
)
_FP16_FLAG = re.compile(r"(^|[._-])fp16(\.enabled)?$", re.IGNORECASE)
_EMBEDDING = re.compile(r"embed|(?:^|\.)wte\.|(?:^|\.)wpe\.|lookup|token_table", re.IGNORECASE)
_WRAPPERS = frozenset({"module", "model", "_orig_mod", "network", "net", "backbone"})
_FOLLOWING = re.compile(r"time[d ]*out|closed by peer|connection reset|broken pipe", re.IGNORECASE)


def all_of(*tailors: Tailor) -> Tailor:
    """Return one function that gathers the facts of several."""

    def gather(run: Run) -> Facts:
        return {key: value for tailor in tailors for key, value in tailor(run).items()}

    return gather


def place_of(run: Run, cause: str) -> Location | None:
    """Return where the source sets what a cause is about, if there is one such place."""
    return place_of_setting(project_of(run), cause) if run.sources else None


def learning_rate(run: Run) -> Facts:
    """Name the learning rate by the key it was set with: the highest, where there are several."""
    found = rate_in_use(run)
    if found is None:
        return {}
    name, text, value = found
    facts = _rate_facts(name, text, value, rate_cut(run))
    return {**facts, "lr_in_use": f" (it peaks at {text})"} if name == PEAK else facts


def rate_in_use(run: Run) -> tuple[str, str, float] | None:
    """Return the learning rate: by which name, as it is written, and its value."""
    rates = [(as_number(s.value) or 0.0, s) for s in run.config.learning_rates()]
    value, setting = max(rates, key=lambda r: r[0], default=(0.0, None))
    peak = _peak(run)
    if setting is not None and value > 0 and peak <= value * SECOND_OPINION:
        return setting.key, str(setting.value), value
    if peak > 0:
        return PEAK, f"{peak:g}", peak
    return _rate_in_source(run)


def _peak(run: Run) -> float:
    series = run.get("lr")
    finite = series.finite().values if series is not None else np.empty(0)
    return float(finite.max()) if len(finite) else 0.0


def _rate_in_source(run: Run) -> tuple[str, str, float] | None:
    """The rate as the code writes it, where it writes only one."""
    matches = (m for s in run.sources for m in _RATE_IN_SOURCE.finditer(s.text))
    written = {(m[1] or m[3], m[2] or m[4]) for m in matches}
    if len({text for _, text in written}) != 1:
        return None
    name, text = min(written)
    value = as_number(text) or 0.0
    return (name, text, value) if value > 0 else None


def rate_cut(run: Run) -> float:
    """Return by how much to divide a rate that is too high: half, or what the steps call for.

    A step that changes the weights by a fifth of their norm needs more than half the rate.
    """
    process = run.recording.main if run.recording is not None else None
    samples = process.samples[:EARLY_SAMPLES] if process is not None else ()
    ratios = [r for s in samples for r in s.update_ratios if r is not None and isfinite(r)]
    excess = (median(ratios) if ratios else 0.0) / LARGE_STEP
    return float(10 ** ceil(log10(excess))) if excess > 1 else 2.0


def _rate_facts(name: str, text: str, value: float, cut: float) -> Facts:
    return {
        "lr_cut": f"{name} from {text} to {value / cut:g}",
        "lr_raise": f"{name} from {text} to {value * 10:g}",
        "lr_in_use": f" ({name} = {text})",
    }


def applied_rate(run: Run) -> Facts:
    """Lay the configured learning rate beside the logged one, where they differ."""
    peak = _peak(run)
    for setting in run.config.learning_rates():
        value = as_number(setting.value) or 0.0
        ratio = peak / value if value > 0 else 0.0
        if ratio > SECOND_OPINION or 0 < ratio < 1 / SECOND_OPINION:
            return {"mismatch": f": {setting.key} = {setting.value}, but the log peaks at {peak:g}"}
    return {}


def batch_size(run: Run) -> Facts:
    """Name the batch size, and a smaller and a larger one."""
    setting, size = _number(run, *BATCH_SIZES)
    if setting is None or size < 1:
        return {}
    name = f"{setting.key} from {size:g}"
    cut = f"the length or resolution of the inputs ({setting.key} is 1 already)"
    return {
        "batch_in_use": f" ({setting.key} = {size:g})",
        "batch_cut": f"{name} to {size // 2:g}" if size > 1 else cut,
        "batch_raise": f"{name} to {size * 4:g}",
    }


def weight_decay(run: Run) -> Facts:
    """Name the weight decay and a tenth of it."""
    setting, value = _number(run, "weight_decay", "wd", "l2")
    if setting is None or value <= 0:
        return {}
    return {
        "decay_in_use": f" ({setting.key} = {setting.value})",
        "decay_cut": f"{setting.key} from {setting.value} to {value / 10:g}",
    }


def clipping(run: Run) -> Facts:
    """Propose a clip from the gradient norms of the run, and a looser one than it has."""
    facts = {}
    norms = run.get("grad_norm")
    finite = norms.finite().values if norms is not None else np.empty(0)
    ordinary = float(np.median(finite)) if len(finite) >= 10 else 0.0
    if ordinary > 0:
        facts["clip_value"] = f"{float(f'{ordinary * CLIP_OVER_MEDIAN:.1g}'):g}"
    setting, value = _number(run, *CLIPS)
    if setting is not None and value > 0:
        facts["clip_raise"] = f"{setting.key} from {setting.value} to {value * 10:g}"
    return facts


def best_validation(run: Run) -> Facts:
    """Name the time of the lowest validation loss."""
    series = run.main_loss("val")
    finite = series.finite() if series is not None else None
    if finite is None or not len(finite):
        return {}
    best = int(np.argmin(finite.values))
    return {"best": f"{finite.when(best)} (validation loss {finite.values[best]:.4g})"}


def dropout(run: Run) -> Facts:
    """Name the dropout in use and a higher one."""
    setting, value = _number(run, *DROPOUTS)
    if setting is None or not 0 <= value < 0.5:
        return {}
    return {"dropout_raise": f"{setting.key} from {setting.value} to {min(value + 0.2, 0.5):g}"}


def classes(run: Run) -> Facts:
    """Say how many classes the config has, and what guessing among them costs."""
    setting, value = _number(run, *CLASS_COUNTS)
    if setting is None or value < 2:
        return {}
    count = int(value)
    return {
        "classes": f"all {count} classes",
        "classes_fact": f" ({setting.key} = {count})",
        "outputs": f"{count} outputs",
        "label_range": f"0 … {count - 1}",
        "chance": f"log({count}) = {log(count):.2f}",
    }


def half_precision(run: Run) -> Facts:
    """Name the setting that chose fp16, and its bfloat16 counterpart."""
    for setting in run.config.settings:
        other, is_fp16 = _FP16_FLAG.subn(r"\1bf16\2", setting.key)
        if is_fp16 and str(setting.value).lower() in {"true", "1", "yes"}:
            return {"bf16": f"Set {other} in place of {setting.key}: it has the range of fp32"}
    for chosen in (run.config.find(name) for name in PRECISIONS):
        wider = WIDER.get(str(chosen.value).lower()) if chosen is not None else None
        if chosen is not None and wider:
            change = f"Change {chosen.key} from {chosen.value} to {wider}"
            return {"bf16": f"{change}: it has the range of fp32 and needs no GradScaler"}
    return {}


def run_length(run: Run) -> Facts:
    """Say how many steps the run was to make, or made."""
    steps, is_planned = _steps(run)
    return {"run_length": f"{'' if is_planned else 'about '}{steps} steps"} if steps else {}


def warmup(run: Run) -> Facts:
    """Propose a warm-up for the length of the run."""
    steps, _ = _steps(run)
    length = int(float(f"{steps * WARMUP_SHARE:.1g}"))
    setting, now = _number(run, *WARMUPS)
    if setting is not None and now > 0:
        return {"warmup_length": f"{max(length, 4 * int(now))} steps ({setting.key} is {now:g})"}
    return {"warmup_length": f"the first {length} steps"} if length >= 10 else {}


def _steps(run: Run) -> tuple[int, bool]:
    """The number of steps, and whether the config says so or only the log."""
    planned = run.config.number(*RUN_LENGTHS)
    if planned is not None and planned > 0:
        return int(planned), True
    loss = run.main_loss()
    if loss is None or loss.axis != "step" or not np.isfinite(loss.steps).any():
        return 0, False
    return int(np.nanmax(loss.steps)), False


def workers(run: Run) -> Facts:
    """Name the number of data-loader workers, a larger and a smaller one."""
    setting, value = _number(run, *WORKERS)
    if setting is None or value < 0:
        return {}
    facts = {"workers_raise": f"{setting.key} from {value:g} to {max(4, value * 2):g}"}
    if value > 1:
        facts["workers_cut"] = f"{setting.key} from {value:g} to {value // 2:g}"
    return facts


def accumulation(run: Run) -> Facts:
    """Say over how many micro-batches the run accumulates."""
    setting, value = _number(run, *ACCUMULATIONS)
    return {"accumulation": f"{value:g}"} if setting is not None and value > 1 else {}


def save_interval(run: Run) -> Facts:
    """Name the saving interval and ten times it."""
    setting, value = _number(run, *SAVE_INTERVALS)
    if setting is None or value < 1:
        return {}
    return {"save_interval": f"{setting.key} from {value:g} to {value * 10:g}"}


def seed(run: Run) -> Facts:
    """Name the seed the user has chosen."""
    setting, value = _number(run, "seed", "random_seed", "manual_seed")
    return {"seed": f"{value:g}"} if setting is not None else {}


def embedding_share(run: Run) -> Facts:
    """Say which share of the parameters sits in embeddings."""
    tensors = _tensors(run)
    total = sum(t.size for t in tensors)
    held = sum(t.size for t in tensors if _EMBEDDING.search(t.name))
    return {"embedding_share": f"{100 * held / total:.0f} %"} if held else {}


def largest_block(run: Run) -> Facts:
    """Name the block with the most parameters and its share."""
    sizes: dict[str, int] = {}
    for tensor in _tensors(run):
        path = [p for p in tensor.name.split(".")[:-1] if p not in _WRAPPERS]
        block = path[0] if path else tensor.name
        sizes[block] = sizes.get(block, 0) + tensor.size
    if not sizes:
        return {}
    block = max(sizes, key=lambda name: sizes[name])
    return {"largest_block": f" ({block}: {100 * sizes[block] / sum(sizes.values()):.0f} %)"}


def vocabulary(run: Run) -> Facts:
    """Say how many rows the embedding table has."""
    tables = [t.shape[0] for t in _tensors(run) if len(t.shape) == 2 and _EMBEDDING.search(t.name)]
    rows = max(tables, default=int(run.config.number("vocab_size", "n_vocab") or 0))
    return {"vocabulary_fact": f" (the table has {rows} rows)"} if rows else {}


def _tensors(run: Run) -> tuple[Tensor, ...]:
    return run.architecture.tensors if run.architecture is not None else ()


def _number(run: Run, *names: str) -> tuple[Setting | None, float]:
    """The first named setting that is a number, best name first."""
    for name in names:
        setting = run.config.find(name)
        value = as_number(setting.value) if setting is not None else None
        if setting is not None and value is not None and np.isfinite(value):
            return setting, value
    return None, 0.0


def error(run: Run) -> Facts:
    """Quote the first line of the first exception."""
    for failure in run.failures:
        text = f"{failure.type}: {failure.message}".strip().split("\n", 1)[0].rstrip(".")
        return {"error_fact": f": {_shortened(text)}"}
    return {}


def first_rank(run: Run) -> Facts:
    """Name the rank whose exception is not itself the echo of another's end."""
    for failure in run.failures:
        if failure.rank is not None and not _FOLLOWING.search(failure.message):
            return {"rank_fact": f" (rank {failure.rank}, {failure.type.rsplit('.', 1)[-1]})"}
    return {}


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


def from_message(*rules: tuple[str, dict[str, str]]) -> Tailor:
    """Return a function that fills templates from the first error or event that a pattern fits."""
    compiled = [(re.compile(pattern, re.DOTALL), templates) for pattern, templates in rules]

    def read(run: Run) -> Facts:
        texts = [f.message for f in run.failures] + [e.text for e in run.events]
        for pattern, templates in compiled:
            for match in (m for m in map(pattern.search, texts) if m):
                groups: tuple[Any, ...] = match.groups(default="")
                return {k: t.format(match[0], *groups) for k, t in templates.items()}
        return {}

    return read


nan_operation = from_message(
    (
        r"Function '(\w+?)(?:Backward\d*)?' returned nan",
        {"operation": ": {1}", "where": "the {1} that anomaly mode names"},
    ),
)
matmul_shapes = from_message(
    (
        r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)",
        {
            "shape_fact": ": the layer takes {3} features and receives {2}",
            "shape_fix": "`nn.Linear({3}, {4})` to `nn.Linear({2}, {4})`",
        },
    ),
    (
        r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton "
        r"dimension (\d+)",
        {"shape_fact": ": {1} and {2} meet in dimension {3}"},
    ),
    (
        r"shape '(\[[^']*\])' is invalid for input of size (\d+)",
        {"shape_fact": ": {1} cannot hold {2} elements"},
    ),
    (
        r"must match except in dimension (\d+)\. Expected size (\d+) but got size (\d+)",
        {"shape_fact": ": sizes {2} and {3} are joined along dimension {1}"},
    ),
)
channels = from_message(
    (
        r"expected input\[[\d, ]+\] to have (\d+) channels, but got (\d+) channels",
        {
            "channel_fact": ": it is built for {1} and gets {2}",
            "channel_fix": "Build the layer with `in_channels={2}`, or convert the input to {1}",
        },
    ),
    (
        r"running_mean should contain (\d+) elements not (\d+)",
        {
            "channel_fact": ": the norm is built for {2} and gets {1}",
            "channel_fix": "Build the normalisation layer with {1} features",
        },
    ),
)
devices = from_message(
    (r"at least two devices, ([\w:]+) and ([\w:]+)", {"devices_fact": ": {1} and {2}"}),
)
dtypes = from_message(
    (r"must have the same dtype, but got ([\w.]+) and (\w+)", {"dtypes_fact": ": {1} and {2}"}),
    (
        r"expected (?:scalar type|target dtype to be) ([\w ]+?),? but (?:found|got) (\w+)",
        {"dtypes_fact": ": {2} where {1} is wanted"},
    ),
    (
        r"Input type \(([\w.]+)\) and (?:weight|bias) type \(([\w.]+)\)",
        {"dtypes_fact": ": {1} against {2}"},
    ),
)
index = from_message(
    (
        r"index (-?\d+) is out of bounds for dimension \d+ with size (\d+)",
        {"index_fact": ": {1} in a table of {2}"},
    ),
)
label = from_message((r"Target (-?\d+) is out of bounds", {"label_fact": ": {1}"}))
allocation = from_message(
    (r"Tried to allocate ([\d.]+ [KMGT]i?B)", {"allocation_fact": " (a request for {1} failed)"}),
)
inplace = from_message(
    (
        r"\[[\w.]*Tensor \[([\d, ]*)\]\], which is output \d+ of (\w+?)(?:Backward\d*)?, is at",
        {
            "inplace_fact": ": the output of {2}, of shape [{1}]",
            "inplace_where": "Write what changes the output of {2} (shape [{1}])",
        },
    ),
)
unused_parameters = from_message(
    (
        r"did not receive grad for rank (\d+): ([\w., ]{1,80})",
        {"unused_fact": " (rank {1}: {2})"},
    ),
)
missing_keys = from_message(
    (r"Unexpected key\(s\) in state_dict: \"([^\"]+)\"", {"keys_fact": ": {1} is not the model's"}),
    (r"Missing key\(s\) in state_dict: \"([^\"]+)\"", {"keys_fact": ": {1} is not in the file"}),
)
size_mismatch = from_message(
    (
        r"size mismatch for (\S+): copying a param with shape torch\.Size\((\[.*?\])\) from "
        r"checkpoint, the shape in current model is torch\.Size\((\[.*?\])\)",
        {"size_fact": ": {1} is {2} in the file and {3} in the model"},
    ),
)
worker = from_message(
    (r"worker \([^)]*\) is killed by signal: (\w+(?: \w+)?)", {"worker_fact": " (signal: {1})"}),
    (r"worker \([^)]*\) exited unexpectedly", {"worker_fact": " without a message"}),
)
signal = from_message(
    (r"\b(SIG(?:KILL|TERM|XCPU|USR1))\b", {"signal_fact": " ({1})"}),
    (r"[Oo]ut of memory: Killed process (\d+)", {"signal_fact": " for lack of memory"}),
)
