"""Canonical metric names: what a metric is, whatever its author called it.

A canonical name is `<kind>/<phase>[/<part>]` for what is measured on data (`loss/train`,
`accuracy/val/top5`, `loss/train/box`), `layers/<name>/<kind>` for what is measured per layer, and a
bare `<kind>` otherwise (`lr`, `grad_norm`, `loss_scale`). What is not recognised keeps its own name
under `other/`.
"""

from __future__ import annotations

import re
from functools import lru_cache

PHASES = {
    "train": "train", "training": "train", "trn": "train", "tr": "train", "trainer": "train",
    "val": "val", "valid": "val", "validation": "val", "eval": "val", "evaluation": "val",
    "dev": "val", "holdout": "val", "vl": "val",
    "test": "test", "testing": "test", "tst": "test",
}  # fmt: skip

# a word that decides the kind of a metric, in order of precedence
KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("loss", frozenset({"loss", "losses", "nll", "bce", "xent", "elbo", "cost", "objective"})),
    ("accuracy", frozenset({"acc", "accuracy", "top1", "top5", "acc1", "acc5", "prec1", "prec5"})),
    ("perplexity", frozenset({"ppl", "perplexity"})),
    ("f1", frozenset({"f1", "fscore"})),
    ("map", frozenset({"map", "map50", "map5095"})),
    ("auc", frozenset({"auc", "auroc", "rocauc", "roc"})),
    ("precision", frozenset({"precision"})),
    ("recall", frozenset({"recall", "sensitivity"})),
    ("iou", frozenset({"iou", "miou", "jaccard"})),
    ("dice", frozenset({"dice"})),
    ("bleu", frozenset({"bleu", "sacrebleu"})),
    ("rouge", frozenset({"rouge", "rouge1", "rouge2", "rougel", "rougelsum"})),
    ("wer", frozenset({"wer"})),
    ("cer", frozenset({"cer"})),
    ("mse", frozenset({"mse"})),
    ("rmse", frozenset({"rmse"})),
    ("mae", frozenset({"mae"})),
    ("r2", frozenset({"r2"})),
    ("psnr", frozenset({"psnr"})),
    ("ssim", frozenset({"ssim"})),
    ("fid", frozenset({"fid"})),
    ("error", frozenset({"err", "error"})),
    ("reward", frozenset({"reward", "rewards", "return", "returns", "score", "rew"})),
    ("entropy", frozenset({"entropy"})),
    ("kl", frozenset({"kl", "kld"})),
)  # fmt: skip

HIGHER_IS_BETTER = frozenset(
    {"accuracy", "f1", "map", "auc", "precision", "recall", "iou", "dice", "bleu", "rouge", "r2",
     "psnr", "ssim", "reward"}
)  # fmt: skip
LOWER_IS_BETTER = frozenset(
    {"loss", "perplexity", "wer", "cer", "mse", "rmse", "mae", "fid", "error"}
)

STEP_NAMES = frozenset(
    {"step", "steps", "global_step", "globalstep", "iter", "iters", "iteration", "iterations",
     "it", "update", "updates", "num_updates", "n_iter", "train_step", "trainer_global_step",
     "total_steps", "timesteps", "total_timesteps", "_step", "num_steps", "batch", "batches",
     "batch_idx", "batch_id", "current_iteration", "current_steps"}
)  # fmt: skip
EPOCH_NAMES = frozenset({"epoch", "epochs", "ep", "current_epoch", "epoch_num", "n_epoch"})

# words that say how a value was averaged or shown, not what it is
_AGGREGATES = frozenset(
    {"avg", "average", "mean", "running", "total", "current", "cur", "epoch", "step", "batch",
     "overall", "sum", "smoothed", "smooth", "the", "of", "metrics", "metric", "iter", "global",
     "per", "value", "final", "lm", "cross", "ce", "logs", "performance", "rank0", "reduced",
     "scalar", "scalars"}
)  # fmt: skip

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+(?:\.\d+)?")


def words(name: str) -> list[str]:
    """Split a metric's name at separators and changes of case, in lower case."""
    return [w.lower() for w in _WORD.findall(name.replace("mAP", "map").replace("@", " "))]


def is_step(name: str) -> bool:
    """Tell whether a name counts steps."""
    return _flat(name) in STEP_NAMES


def is_epoch(name: str) -> bool:
    """Tell whether a name counts epochs."""
    return _flat(name) in EPOCH_NAMES


def _flat(name: str) -> str:
    return re.sub(r"[\s/.-]+", "_", name.strip().lower())


@lru_cache(maxsize=4096)
def canonical(name: str, phase: str | None = None) -> str:
    """Return the canonical name of a metric; `phase` is what the context says when the name does not."""
    parts = words(name)
    named_phase = next((PHASES[w] for w in parts if w in PHASES), None)
    rest = [w for w in parts if w not in PHASES]
    return (
        _layer_name(name, parts)
        or _machine_name(rest)
        or _measured_name(rest, named_phase or phase)
        or f"other/{name.strip()}"
    )


def _layer_name(name: str, parts: list[str]) -> str | None:
    """A gradient or weight norm with the dotted path of a parameter in it."""
    if not {"grad", "gradient", "gradients", "grads", "weight", "weights"} & set(parts):
        return None
    path = max(re.split(r"[/\s]+", name), key=lambda p: p.count("."))
    if path.count(".") < 1 or not re.search(r"[A-Za-z_]", path):
        return None
    is_gradient = any(w.startswith("grad") for w in parts)
    return f"layers/{path}/{'grad_norm' if is_gradient else 'weight_norm'}"


def _machine_name(rest: list[str]) -> str | None:
    """What is measured on the optimizer and the machine rather than on data."""
    have = set(rest)
    if {"gnorm", "gradnorm"} & have or ("norm" in have and any(w.startswith("grad") for w in rest)):
        return "grad_norm"
    if "norm" in have and {"weight", "weights", "param", "params", "parameter"} & have:
        return "weight_norm"
    if "scale" in have and {"loss", "grad", "amp"} & have:
        return "loss_scale"
    rate = [w for w in rest if re.fullmatch(r"lr\d*", w)]
    if rate or ("learning" in have and "rate" in have):
        part = [w for w in rest if w not in {"lr", "learning", "rate", "x", "pg", "group", "lr0"}]
        return "/".join(["lr", *part]) if part and part != ["0"] else "lr"
    if "second" in have or "sec" in have or {"throughput", "mfu", "tflops", "tps", "ips"} & have:
        return "throughput/" + "_".join(rest) if len(rest) > 1 else "throughput"
    if {"mem", "memory", "vram", "rss"} & have:
        return "memory/" + "_".join(w for w in rest if w not in {"mem", "memory"} or len(rest) == 1)
    if {"time", "runtime", "eta", "elapsed", "duration", "ms", "latency", "timestamp"} & have:
        return "time/" + "_".join(rest)
    return None


def _measured_name(rest: list[str], phase: str | None) -> str | None:
    joined = "".join(rest)
    for kind, names in KINDS:
        found = [w for w in rest if w in names or re.sub(r"\d+$", "", w) in names]
        if not found and joined in names:
            found = rest
        if not found:
            continue
        part = [w for w in rest if w not in found and w not in _AGGREGATES]
        part += [
            w
            for w in found
            if w not in {kind, "acc", "loss", "losses"}
            and kind == "accuracy"
            and w not in {"top1", "acc1", "prec1", "accuracy"}
        ]
        named = f"{kind}/{phase or 'train'}"
        return "/".join([named, "_".join(part)]) if part else named
    return None


def kind_of(canonical_name: str) -> str:
    """Return the kind of a canonical name: ``loss`` of ``loss/val/box``."""
    parts = canonical_name.split("/")
    return parts[-1].split("@")[0] if parts[0] == "layers" else parts[0].split("@")[0]


def phase_of(canonical_name: str) -> str | None:
    """Return the phase of a canonical name, where it has one."""
    parts = canonical_name.split("@")[0].split("/")
    return parts[1] if len(parts) > 1 and parts[1] in {"train", "val", "test"} else None
