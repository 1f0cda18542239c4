"""Canonical metric names: what a metric is, whatever its author called it.

A canonical name is `<kind>/<phase>[/<part>]` for what is measured on data (`loss/train`,
`accuracy/val/top5`, `loss/train/box`), `layers/<name>/<kind>` for what is measured per layer, and a
bare `<kind>` otherwise (`lr`, `grad_norm`, `loss_scale`). What is not recognised keeps its own name
under `other/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

PHASES = {
    "train": "train", "training": "train", "trn": "train", "tr": "train", "trainer": "train",
    "val": "val", "valid": "val", "validation": "val", "eval": "val", "evaluation": "val",
    "validate": "val", "dev": "val", "holdout": "val", "vl": "val",
    "test": "test", "testing": "test", "tst": "test",
}  # fmt: skip

# a word that decides the kind of a metric, in order of precedence
KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("loss", frozenset({"loss", "losses", "nll", "bce", "xent", "elbo", "cost", "objective",
                        "crossentropy", "logloss", "mlogloss", "lossvalue"})),
    ("error", frozenset({"err", "error"})),
    ("accuracy", frozenset({"acc", "accuracy", "accuracies", "accu", "top"})),
    ("perplexity", frozenset({"ppl", "perplexity"})),
    ("bits", frozenset({"bpc", "bpb", "bpd"})),
    ("f1", frozenset({"f1", "fscore"})),
    ("map", frozenset({"map", "ap"})),
    ("auc", frozenset({"auc", "auroc", "rocauc", "roc", "auprc"})),
    ("precision", frozenset({"precision"})),
    ("recall", frozenset({"recall", "sensitivity"})),
    ("specificity", frozenset({"specificity"})),
    ("iou", frozenset({"iou", "miou", "jaccard"})),
    ("dice", frozenset({"dice"})),
    ("bleu", frozenset({"bleu", "sacrebleu"})),
    ("chrf", frozenset({"chrf"})),
    ("meteor", frozenset({"meteor"})),
    ("rouge", frozenset({"rouge"})),
    ("em", frozenset({"em", "exactmatch"})),
    ("wer", frozenset({"wer"})),
    ("cer", frozenset({"cer"})),
    ("rmse", frozenset({"rmse"})),
    ("mse", frozenset({"mse"})),
    ("mape", frozenset({"mape", "smape"})),
    ("mae", frozenset({"mae"})),
    ("r2", frozenset({"r2"})),
    ("mrr", frozenset({"mrr"})),
    ("ndcg", frozenset({"ndcg"})),
    ("eer", frozenset({"eer"})),
    ("mcc", frozenset({"mcc", "matthews"})),
    ("kappa", frozenset({"kappa"})),
    ("correlation", frozenset({"pearson", "pearsonr", "spearman", "spearmanr", "correlation"})),
    ("psnr", frozenset({"psnr"})),
    ("ssim", frozenset({"ssim"})),
    ("fid", frozenset({"fid"})),
    ("reward", frozenset({"reward", "rewards", "return", "returns", "rew", "utility"})),
    ("entropy", frozenset({"entropy"})),
    ("kl", frozenset({"kl", "kld"})),
    ("score", frozenset({"score"})),
)  # fmt: skip

HIGHER_IS_BETTER = frozenset(
    {"accuracy", "f1", "map", "auc", "precision", "recall", "specificity", "iou", "dice", "bleu",
     "chrf", "meteor", "rouge", "em", "r2", "mcc", "kappa", "correlation", "psnr", "ssim",
     "reward", "score", "mrr", "ndcg"}
)  # fmt: skip
LOWER_IS_BETTER = frozenset(
    {
        "loss",
        "perplexity",
        "bits",
        "wer",
        "cer",
        "mse",
        "rmse",
        "mae",
        "mape",
        "fid",
        "error",
        "eer",
    }
)
# a term of a loss that goes by its own name: "recon 22.1 kl 3.8"
_TERMS = frozenset({"recon", "reconstruction"})
# computed on held-out data only, so that a name without a phase means validation
_EVALUATED = frozenset({"wer", "cer", "bleu", "chrf", "meteor", "rouge", "em", "map", "fid"})

_STEP_WORDS = frozenset(
    {"step", "steps", "globalstep", "iter", "iters", "iteration", "iterations", "it", "itr", "i",
     "update", "updates", "timestep", "timesteps", "batch", "batches", "minibatch", "episode",
     "episodes", "round", "rounds", "frame", "frames"}
)  # fmt: skip
_EPOCH_WORDS = frozenset({"epoch", "epochs", "ep"})
_COUNTER_WORDS = frozenset(
    {"global", "total", "num", "number", "n", "no", "nb", "idx", "index", "id", "current", "cur",
     "count", "counter", "done", "env", "optimizer", "optim", "opt", "server", "time", "acc",
     "accumulated", *PHASES}
)  # fmt: skip
_COUNTER_ENDS = frozenset({"idx", "index", "id", "num", "number", "no", "count", "counter", "done"})
# "time/iterations" counts, "time/iter" measures
_TIMED_COUNTERS = frozenset(
    {"iterations", "timesteps", "timestep", "step", "steps", "episodes", "epochs"}
)

# words that say how a value was averaged or shown, not what it is
_AGGREGATES = frozenset(
    {"avg", "average", "mean", "running", "total", "current", "cur", "epoch", "step", "batch",
     "overall", "sum", "smoothed", "smooth", "the", "of", "metrics", "metric", "iter", "global",
     "per", "final", "lm", "cross", "ce", "log", "logs", "performance", "rank0", "reduced",
     "scalar", "scalars", "score", "rate", "ep", "episode", "episodic", "rollout", "rollouts",
     "charts", "sparse", "categorical", "binary", "avr", "ave", "so", "far",
     "last"}
)  # fmt: skip
_MEANS = frozenset({"avg", "average", "mean", "total", "global"})
# words that turn the name of a metric into the name of something else: "best_val_loss" is no loss
_ABOUT_A_METRIC = frozenset(
    {"best", "worst", "highest", "lowest", "previous", "melhor", "mejor", "meilleur", "meilleure",
     "migliore", "beste", "bester", "min", "max", "weight", "weights", "coef", "coeff", "lambda",
     "ratio", "patience", "threshold", "delta", "improvement", "count", "num", "std", "var",
     "variance", "target", "flos", "flops", "id", "name", "fraction", "nan"}
)  # fmt: skip

_OPTIMIZERS = frozenset(
    {"adam", "adamw", "sgd", "rmsprop", "adagrad", "lion", "adafactor", "lamb", "nadam", "radam",
     "muon", "adamax", "adadelta"}
)  # fmt: skip
_RATE_WORDS = frozenset(
    {"lr", "learning", "rate", "learningrate", "x", "group", "param", "current", "cur"}
)
_TIME_WORDS = frozenset(
    {"time", "runtime", "eta", "elapsed", "duration", "ms", "latency", "timestamp", "seconds",
     "second", "secs", "sec", "dt", "walltime"}
)  # fmt: skip
_IN_SECONDS = frozenset({"data_s", "dataloading_s", "updt_s", "update_s"})  # LeRobot
_WORK_WORDS = frozenset({"reader", "loader", "batch", "data", "iter"})
_SPEED_WORDS = frozenset(
    {"throughput", "mfu", "tflops", "tps", "ips", "fps", "wps", "ups", "tgs", "qps"}
)
_MEMORY_WORDS = frozenset({"mem", "memory", "vram", "rss"})
_SPEED = re.compile(
    r"(?:tok|sample|it\b|its\b|iter|step|image|img|example|batch|word|update|frame|seq|sentence"
    r"|epoch)\w*?\s*(?:/|[ _-]?per[ _-]?|[ _-](?=sec))\s*s(?:ec(?:ond)?s?)?(?![a-z])",
    re.IGNORECASE,
)

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+(?:\.\d+)?")
# spellings that splitting at a change of case would tear apart
_SPELLINGS = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"mAP|MAP(?![A-Za-z])", "map"),
        (r"EpRet\b", " episode return"),  # Spinning Up
        (r"^TrA$", "train acc"),  # "TrA: 38.3% | VAcc: 46.2% VF1: 45.1%"
        (r"^VA$", "val acc"),
        (r"^V(?=Acc|F1|AUC|IoU)", "val "),
        (r"^Va(?=Acc|F1|Loss)", "val "),
        (r"^Te(?=Acc|F1|Loss)", "test "),
        (r"[mM]?IoU|io_u\b", "iou"),
        (r"AdamW", "adamw"),
        (r"(?i)cross[ _-]?entropy", "crossentropy"),
        (r"(?i)root[ _-]?mean[ _-]?squared?[ _-]?error", "rmse"),
        (r"(?i)mean[ _-]?squared?[ _-]?error", "mse"),
        (r"(?i)mean[ _-]?absolute[ _-]?error", "mae"),
        (r"(?i)word[ _-]?error[ _-]?rate", "wer"),
        (r"(?i)exact[ _-]?match", "exactmatch"),
        (r"(?i)h[eo]ld[ _-]?out", "holdout"),
        (r"(?i)(?:0?\.50?|50)\s*[:_-]\s*(?:0?\.95|95)", " 5095 "),  # mAP over a range of overlaps
        (r"\bmap \.50?$", "map 50"),
        (r"\(B\)$", ""),  # Ultralytics: boxes, the plain case; (M) masks, (P) poses
        (r"\(M\)$", " mask"),
        (r"\(P\)$", " pose"),
        (r"@", " "),
        (r"(?i)\blm loss value$", "lm loss"),  # Megatron's validation
    )
)


_GLUED = re.compile(r"([a-z]+)(loss|acc|accuracy|ppl|auc|lr)")
_WHOLE_WORDS = frozenset({"logloss", "mlogloss"})

MAX_NAME = 200  # a longer one is a sentence or an attack


@lru_cache(maxsize=4096)
def _split(name: str) -> tuple[str, ...]:
    name = name[:MAX_NAME]
    for pattern, word in _SPELLINGS:
        name = pattern.sub(word, name)
    return tuple(part for w in _WORD.findall(name) for part in _unglued(w.lower()))


def _unglued(word: str) -> tuple[str, ...]:
    """Split words that were written together: ``trainloss``, ``valacc``, ``closs``."""
    match = _GLUED.fullmatch(word)
    if match is None or word in _WHOLE_WORDS:
        return (word,)
    is_told = match[2] == "loss" or match[1] in PHASES or match[1] in _AGGREGATES
    return (match[1], match[2]) if is_told else (word,)


def words(name: str) -> list[str]:
    """Split a metric's name at separators and changes of case, in lower case."""
    return list(_split(name))


def is_step(name: str) -> bool:
    """Tell whether a name counts steps."""
    return _is_counter(_split(name), _STEP_WORDS)


def is_epoch(name: str) -> bool:
    """Tell whether a name counts epochs."""
    return _is_counter(_split(name), _EPOCH_WORDS)


def _is_counter(parts: tuple[str, ...], counted: frozenset[str]) -> bool:
    if not parts or not any(w in counted for w in parts):
        return False
    if "time" in parts and (parts[0] != "time" or parts[-1] not in _TIMED_COUNTERS):
        return False
    if "acc" in parts and parts[-2:] != ("acc", "iter"):
        return False  # "acc_iter" is OpenPCDet's for all iterations so far, "acc_step" Lightning's
    ends_well = parts[-1] in counted or parts[-1] in _COUNTER_ENDS
    return ends_well and all(w in counted or w in _COUNTER_WORDS for w in parts)


_LOSS_OF_A_PHASE = re.compile(r"(?i)\b(train(?:ing)?|valid(?:ation)?|eval|test) loss\b")


def in_one_word(text: str) -> str:
    """Join names such as "Training Loss", which single blanks between columns would take apart."""
    return _LOSS_OF_A_PHASE.sub(r"\1_loss", text)


@lru_cache(maxsize=4096)
def canonical(name: str, phase: str | None = None) -> str:
    """Return the canonical name of a metric; `phase` says what its name may leave out."""
    name = name.strip()[:MAX_NAME].replace("@", " ")  # `@` tells apart the tellings of one metric
    parts = words(_TERM_OF_A_LOSS.sub("loss_", _VERL.sub("", name)))
    # the last one: "train/val_loss" is a validation loss on the panel of the training
    named_phase = next((PHASES[w] for w in reversed(parts) if w in PHASES), None)
    rest = [w for w in parts if w not in PHASES]
    default = "val" if parts[:1] == ["metrics"] else None
    if _ADVERSARIAL.fullmatch(name):
        return f"loss/{named_phase or phase or 'train'}/{name.lower()}"
    return (
        _layer_name(name)
        or _machine_name(name, rest, named_phase or phase)
        or _measured_name(rest, named_phase or phase or default)
        or f"other/{name}"
    )


# the losses of CycleGAN and pix2pix go by these names alone
_ADVERSARIAL = re.compile(r"[DG]_[AB]|(?:cycle|[Cc]yc|idt)_[AB]|G_GAN|G_L1|D_real|D_fake")
# verl: panels that say who measures it
_VERL = re.compile(r"^critic/(?=rewards/|score/)|^actor/(?=entropy$|lr$|ppo_kl$)")
_TERM_OF_A_LOSS = re.compile(r"(?:^|(?<=[/_. ]))L_(?=[A-Za-z]{2})")  # "train_L_vae", "L_recon"
_GRADIENT = r"grad(?:ient)?s?(?:[_ ](?:l2|2))?(?:[_ ]?norms?)?"
_WEIGHT = r"(?:weights?|params?|parameters?)(?:[_ ](?:l2|2))?(?:[_ ]?norms?)?"
_LIGHTNING = re.compile(r"grad_(?:\d+(?:\.\d+)?|inf)_norm")
_WHOLE_MODEL = frozenset({"total", "norm", "global", "all", "overall", "l2", "total_norm"})


def _layer_name(name: str) -> str | None:
    """A gradient or weight norm that names its parameter, as in ``gradients/fc.weight``."""
    name = _LIGHTNING.sub("grad_norm", name.strip())
    segments = [s for s in re.split(r"[/\s:]+", name) if s and s.lower() not in PHASES]
    is_phrase = "/" not in name
    for kind, mark in (("grad_norm", _GRADIENT), ("weight_norm", _WEIGHT)):
        layer = _layer_after(segments, mark, is_phrase=is_phrase) or _layer_around(segments, mark)
        if layer:
            return f"layers/{layer}/{kind}"
    return None


def _layer_after(segments: list[str], mark: str, *, is_phrase: bool) -> str | None:
    """``grad_norm/encoder`` and ``weights/fc.weight``, but not ``optim/grad_norm``."""
    for i, segment in enumerate(segments[:-1]):
        is_marked = re.fullmatch(mark, segment, re.IGNORECASE)
        # "weight decay" and "gradient accumulation steps" are phrases, no paths
        if is_marked and ("norm" in segment.lower() or not is_phrase):
            path = segments[i + 1 :]
            if re.fullmatch(mark, path[-1], re.IGNORECASE):
                path.pop()
            whole = not path or path[0].lower() in _WHOLE_MODEL | _AGGREGATES | _ABOUT_A_METRIC
            return None if whole else "/".join(path)
    return None


def _layer_around(segments: list[str], mark: str) -> str | None:
    """``fc.weight/grad_norm``, ``fc.weight.grad_norm`` and ``grad_norm_fc.weight``."""
    for i, segment in enumerate(segments):
        is_marked = any(re.fullmatch(mark, s, re.IGNORECASE) for s in segments[i + 1 :])
        if is_marked and "." in segment and re.search(r"[A-Za-z_]", segment):
            return segment
        for pattern in (rf"(.+\..+?)[._]{mark}", rf"{mark}[._](.+\..+)"):
            inner = re.fullmatch(pattern, segment, re.IGNORECASE)
            # "fc.weight" alone names a parameter, not its norm
            if inner and (mark is _GRADIENT or "norm" in segment.lower()):
                return inner[1]
    return None


def _machine_name(name: str, rest: list[str], phase: str | None) -> str | None:
    """What is measured on the optimizer and the machine rather than on data."""
    have = set(rest)
    where = [phase] if phase in {"val", "test"} else []
    is_gradient = _is_norm(rest, ("grad",)) or bool({"gnorm", "gradnorm", "grdn"} & have)
    is_gradient |= [w for w in rest if w not in _MEANS] in (["grad"], ["gradient"])
    if name.strip() == "max_grad_norm":
        return None  # where the gradients are clipped
    if is_gradient or rest == ["total", "norm"]:
        part = _norm_part(name)
        return f"grad_norm/{part}" if part else "grad_norm"
    if _is_norm(rest, ("weight", "param")):
        return "weight_norm"
    if "scale" in have and {"loss", "grad", "amp", "scaler"} & have:
        return "loss_scale"
    if any(re.fullmatch(r"lr\d*|learningrate", w) for w in rest) or {"learning", "rate"} <= have:
        return _rate_name(rest)
    if _SPEED.search(name) or _SPEED_WORDS & have:
        return "/".join(["throughput", *where, "_".join(rest)] if len(rest) > 1 else ["throughput"])
    if _MEMORY_WORDS & have:
        part = "_".join(w for w in rest if w not in {"mem", "memory"} or len(rest) == 1)
        return f"memory/{part or 'memory'}"
    is_spent = "cost" in have and bool(_WORK_WORDS & have)  # Paddle: "avg_reader_cost: 0.01 s"
    is_spent |= name.strip() in _IN_SECONDS
    if is_spent or _TIME_WORDS & have or re.match(r"s/(?:it|step|batch|epoch)", name.strip()):
        return "/".join(["time", *where, "_".join(rest)])
    return None


def _is_norm(rest: Iterable[str], of: tuple[str, ...]) -> bool:
    return bool({"norm", "norms"} & set(rest)) and any(w.startswith(of) for w in rest)


_NORM_WORDS = frozenset({"grad", "gradient", "gradients", "grads", "norm", "norms", "gnorm",
                         "gradnorm", "clip", "clipping", "before", "pre", "unclipped", "raw", "num",
                         "l2", "2", "2.0", "all", "weight", "model", "grdn"})  # fmt: skip


def _norm_part(name: str) -> str:
    """What a gradient norm is restricted to; a namespace before a slash says nothing."""
    last = words(_LIGHTNING.sub("grad_norm", name).rsplit("/", 1)[-1])
    known = _NORM_WORDS | _AGGREGATES
    return "_".join(w for w in last if w not in known and w not in PHASES)


_FIRST_RATE = re.compile(r"lr\d*|(?:group|optim|optimizer)0?")


def _rate_name(rest: list[str]) -> str:
    group = next((w[2:] for w in rest if re.fullmatch(r"lr\d+", w)), "")
    part = [w for w in rest if w not in _RATE_WORDS and not _FIRST_RATE.fullmatch(w)]
    if rest[0] == "lr" and part and part[0] in _OPTIMIZERS:  # Lightning: lr-AdamW/pg1
        part = part[1:]
    part += [f"pg{int(group)}"] if group.strip("0") else []
    return "/".join(["lr", *part]) if part not in ([], ["0"], ["pg0"], ["pg", "0"]) else "lr"


def _measured_name(rest: list[str], phase: str | None) -> str | None:
    about = set(rest) - ({"target"} if phase else set())  # the target domain of an adaptation
    if _ABOUT_A_METRIC & about:
        return None
    if rest[:1] == ["objective"] and set(rest[1:]) - _AGGREGATES - {"value", "function"}:
        rest = rest[1:]  # a panel: "objective/kl" is no objective
    joined = "".join(rest)
    is_reward = _is_reward(rest)
    if "loss" in rest and {"ppl", "perplexity"} & set(rest):
        rest = [w for w in rest if w != "loss"]  # Megatron: "lm loss PPL"
    for kind, spelled in KINDS:
        if is_reward and kind != "reward":
            continue
        found = [w for w in rest if re.sub(r"\d+$", "", w) in spelled or w in spelled]
        if not found and joined in spelled:
            found = rest
        if not found or (rest == ["top"] and kind == "accuracy"):  # "saved as top 3"
            continue
        part = [w for w in rest if w not in found and w not in _AGGREGATES]
        if part and part != ["nll"]:  # the cross entropy of one of several layers or heads
            part = [w for w in rest if w not in found and w not in _AGGREGATES - {"ce"}]
        part += [n for w in found if w not in spelled and (n := re.sub(r"^\D+", "", w))]
        named = f"{kind}/{phase or ('val' if kind in _EVALUATED else 'train')}"
        part = _plain_part(kind, part)
        return f"{named}/{'_'.join(part)}" if part else named
    if set(rest) & _TERMS and set(rest) <= _TERMS | _AGGREGATES:
        return f"loss/{phase or 'train'}/recon"
    if rest[:1] in (["prec"], ["prec1"], ["prec5"]) or "hits" in rest:  # Prec@1 of ImageNet scripts
        return _measured_name(["acc", *(re.sub(r"\D", "", w) or "1" for w in rest[-1:])], phase)
    return None


def _is_reward(rest: list[str]) -> bool:
    """Tell a reward for something from a measure of it: ``accuracy_reward``, ``f1_reward``."""
    said = [w for w in rest if w not in _AGGREGATES and w not in {"func", "fn", "orm"}]
    return said[-1:] == ["reward"] and len(said) > 1


def _plain_part(kind: str, part: list[str]) -> list[str]:
    """Say which of a family a metric is; the usual one of the family has no part."""
    if kind == "accuracy":
        if not all(w.isdigit() for w in part):
            return part
        counts = [w.lstrip("0") or "0" for w in part]
        return [f"top{w}" for w in counts if w != "1"]
    if kind == "map":
        fraction = {"0.5": "50", "0.50": "50", "0.75": "75"}
        return [fraction.get(w, w) for w in part if w not in {"5095", "b"}]
    return part


def bare_phase(canonical_name: str) -> str | None:
    """Return the phase that is all a name says: ``loss: 0.4, held_out: 0.5``."""
    if not canonical_name.startswith("other/"):
        return None
    parts = words(canonical_name.removeprefix("other/"))
    return PHASES.get(parts[0]) if len(parts) == 1 else None


def kind_of(canonical_name: str) -> str:
    """Return the kind of a canonical name: ``loss`` of ``loss/val/box``."""
    parts = canonical_name.split("/")
    return parts[-1].split("@")[0] if parts[0] == "layers" else parts[0].split("@")[0]


def phase_of(canonical_name: str) -> str | None:
    """Return the phase of a canonical name, where it has one."""
    parts = canonical_name.split("@", maxsplit=1)[0].split("/")
    return parts[1] if len(parts) > 1 and parts[1] in {"train", "val", "test"} else None


def is_measured(canonical_name: str) -> bool:
    """Tell whether a name is a metric of training rather than anything else that is a number."""
    return kind_of(canonical_name) in _MEASURED


_MEASURED = frozenset(kind for kind, _ in KINDS) | {"lr", "grad_norm", "weight_norm", "loss_scale"}
