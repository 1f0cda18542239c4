"""The words of console lines: what counts, what names, and what merely fills a sentence."""

from __future__ import annotations

import re
from functools import lru_cache

from traindx.model.metric_names import (
    PHASES,
    canonical,
    is_epoch,
    is_measured,
    is_step,
    kind_of,
    words,
)

PHASE_WORDS = {
    **PHASES,
    "evaluating": "val", "evaluate": "val", "validating": "val", "validate": "val",
    "train_epoch": "train", "val_epoch": "val", "test_epoch": "test",
    "训练": "train", "训练集": "train", "验证": "val", "验证集": "val",
    "测试": "test", "测试集": "test",
}  # fmt: skip
PHASE_WORDS |= {
    f"{word}{mark}set": phase
    for word, phase in PHASES.items() if len(word) > 2 for mark in ("", "-", "_")
}  # fmt: skip
del PHASE_WORDS["tr"], PHASE_WORDS["vl"], PHASE_WORDS["dev"], PHASE_WORDS["holdout"]

# words that end a name to their left: "finished with loss" is called "loss"
FILLERS = frozenset(
    {"with", "at", "is", "was", "the", "a", "an", "to", "and", "has", "have", "got", "finished",
     "done", "completed", "complete", "from", "in", "on", "for", "after", "reached", "saved",
     "saving", "by", "this", "took", "using", "over", "end", "results", "result", "finish", "info",
     "debug", "warning", "warn", "critical", "root", "main", "__main__", "stdout", "stderr", "of",
     "improved", "decreased", "increased", "did", "not", "model", "checkpoint", "here", "now",
     "mode", "phase", "stage", "at:", "be", "are", "that", "as", "set", "network", "images",
     "dataset", "data", "samples", "split", "reduced", "lowered", "update", "=>", "below", "above",
     "metrics", "summary", "stats", "на"}
)  # fmt: skip
# what may stand between a metric and its value: "loss on the validation set: 0.4"
_BESIDE = frozenset(
    {"set", "data", "dataset", "images", "samples", "epoch", "batch", "split", "examples", "step",
     "steps", "iteration", "iterations", "network", "model", "average", "fold", "the", "of",
     "epochs", "batches", "end", "all", "whole", "is", "was", "this", "last", "far", "so", "mean",
     "iter",
     *PHASE_WORDS}
)  # fmt: skip
_NOT_A_COUNTER = frozenset(
    {
        "best",
        "max",
        "min",
        "start",
        "starting",
        "per",
        "warmup",
        "last",
        "total",
        "num",
        "number",
        "patience",
        "every",
        "save",
        "saving",
        "previous",
        "final",
        "n",
        "each",
        "first",
        "next",
    }
)
# numbers under these names say where and on what a run takes place, not how it goes
IDENTIFIERS = frozenset(
    {"line", "rank", "gpu", "gpus", "device", "devices", "cuda", "cpu", "pid", "ppid", "port",
     "seed", "version", "v_num", "node", "nodes", "worker", "workers", "id", "local_rank",
     "world_size",
     "num_workers", "file", "exit", "code", "exitcode", "signal", "errno", "job", "jobid", "task",
     "date", "year", "attempt", "retry", "col", "column", "char", "position", "thread", "threads",
     "cores", "eta", "shape", "size", "host", "ip", "at", "cudnn", "torch", "python", "pytorch",
     "tensor", "dtype", "uid", "gid", "fd", "global_rank", "local", "process", "proc", "run_id",
     "timestamp", "ts", "remaining", "index", "idx", "offset", "uuid", "hash", "driver", "hour",
     "fold", "page", "section", "figure", "table", "ticket", "issue", "pr", "scaler"}
)  # fmt: skip
# terms of a loss that go by their own name: "recon 0.23 kl 4.1"
TERMS = frozenset({"recon", "reconstruction", "kl_div"})
GLOBAL = 4  # the rank of a counter that surely counts on through the run
STEP_RANKS = (
    ({"global", "total", "num", "updates", "acc", "accumulated"}, GLOBAL),
    ({"episode", "episodes", "round", "rounds"}, 3),
    ({"batch", "minibatch", "batches"}, 1),
)
TRANSLATED = (
    ("训练损失", "train loss"), ("验证损失", "val loss"), ("测试损失", "test loss"),
    ("训练准确率", "train accuracy"), ("验证准确率", "val accuracy"),
    ("测试准确率", "test accuracy"), ("损失值", "loss"), ("损失", "loss"), ("損失", "loss"),
    ("准确率", "accuracy"), ("精度", "accuracy"), ("正解率", "accuracy"), ("学习率", "lr"),
    ("学習率", "lr"), ("轮次", "epoch"), ("轮数", "epoch"), ("エポック", "epoch"),
    ("步数", "step"), ("迭代", "iteration"), ("손실", "loss"), ("정확도", "accuracy"),
    ("에폭", "epoch"), ("에포크", "epoch"), ("потери", "loss"), ("потеря", "loss"),
    ("ошибка", "loss"), ("точность", "accuracy"), ("эпоха", "epoch"), ("шаг", "step"),
    ("pérdida", "loss"), ("perte", "loss"), ("exactitud", "accuracy"), ("época", "epoch"),
    ("époque", "epoch"), ("acurácia", "accuracy"), ("précision", "accuracy"),
    ("最佳", "best"), ("最好", "best"), ("最优", "best"), ("最高", "best"), ("최고", "best"),
    ("лучш", "best"), ("训练", "train"), ("验证", "val"), ("测试", "test"), ("検証", "val"),
    ("validação", "val"), ("validación", "val"), ("entraînement", "train"), ("perda", "loss"),
    ("訓練", "train"), ("학습률", "lr"), ("검증", "val"), ("훈련", "train"),
    ("валидации", "val"), ("валидация", "val"), ("валидационн", "val"),
    ("обучении", "train"), ("обучение", "train"), ("обучения", "train"), ("тесте", "test"),
)  # fmt: skip
_PLAIN = {  # words of other languages that need no accent
    "perda": "loss", "perdida": "loss", "perte": "loss", "perdita": "loss", "verlust": "loss",
    "exactitud": "accuracy", "genauigkeit": "accuracy", "accuratezza": "accuracy",
    "acuracia": "accuracy", "precisao": "accuracy", "epoca": "epoch", "epoche": "epoch",
    "treino": "train", "treinamento": "train", "entrenamiento": "train", "validacao": "val",
    "validacion": "val", "addestramento": "train", "validazione": "val",
}  # fmt: skip
_GLUED = re.compile(r"(?i)(epoch|ep|step|iter|iteration|batch|e(?=0/))[-_#]?(0(?:/0)?)$")


@lru_cache(maxsize=4096)
def translate(word: str) -> str:
    """Return a word in English where its author's language is a common one."""
    if word.isascii():
        return _PLAIN.get(word.lower(), word)
    lowered = word.lower()
    for theirs, ours in TRANSLATED:
        if theirs in lowered:
            lowered = lowered.replace(theirs, f" {ours} ")
    found = " ".join(lowered.split())
    return found if found != word.lower() else word


@lru_cache(maxsize=8192)
def is_known(name: str) -> bool:
    """Tell whether a name is a metric of training or of the machine."""
    return name.lower() in TERMS or not canonical(name).startswith("other/")


@lru_cache(maxsize=8192)
def measures(name: str) -> bool:
    """Tell whether a name is a metric of training."""
    return is_measured(canonical(name))


def counts(said: list[str], *, has_total: bool) -> str | None:
    """Return ``epoch`` or ``step`` if the last of the words counts that."""
    if not said:
        return None
    last, before = said[-1], said[-2].lower() if len(said) > 1 else ""
    if last.lower() in {"number", "no", "num", "idx", "index", "id"} and len(said) > 1:
        last, before = said[-2], ""
    parts = words(last)
    if not parts or before in _NOT_A_COUNTER:
        return None
    is_plural = parts[-1].endswith("s") and not has_total
    if is_epoch(last) and not {"num", "total", "n", "number", "time"} & set(parts):
        return None if is_plural else "epoch"
    if last == "E" and has_total and len(said) == 1:
        return "epoch"
    if is_step(last):
        is_sum = bool({"global", "total"} & set(parts)) or parts[-1] in {"updates", "timesteps"}
        if {"num", "n", "number"} & set(parts) and parts[-1] != "updates":
            return None
        return None if is_plural and not is_sum else "step"
    return None


def counts_many(said: list[str]) -> bool:
    """Tell whether the last word is a plural such as ``iters``, which may count or set a length."""
    return len(said) == 1 and said[0].lower() in {"iters", "iterations", "steps", "updates"}


def step_rank(said: list[str]) -> int:
    """Return how well a counter stands for the progress of the run."""
    have = set(words(" ".join(said[-2:])))
    return next((rank for some, rank in STEP_RANKS if some & have), 2)


def glued_counter(word: str) -> tuple[str, int] | None:
    """Return what a word such as ``epoch_3`` counts, and where in it the number starts."""
    match = _GLUED.match(word)
    if match is None:
        return None
    return ("epoch" if match[1].lower().startswith("e") else "step"), match.start(2)


def pick_name(said: list[str], *, is_bound: bool) -> str:
    """Return the part of a phrase that names a value; `is_bound` by a colon or equals sign."""
    chunks: list[list[str]] = [[]]
    for word in said:
        if word.lower() in FILLERS and not (word == "of" and chunks[-1][-1:] == ["number"]):
            chunks.append([])
        else:
            chunks[-1].append(word)
    last = " ".join(chunks[-1][-4:])
    if not is_bound or measures(last):
        return last
    for chunk in reversed(chunks[:-1]):
        name = " ".join(chunk[-4:])
        if chunk and measures(name):
            at = len(said) - 1 - said[::-1].index(chunk[-1])
            beside = {w.lower() for w in said[at + 1 :]}
            return name if beside <= _BESIDE | FILLERS else last
    return last


def is_plain_error(name: str) -> bool:
    """Tell whether a name is the bare word for a failure rather than an error rate."""
    return kind_of(canonical(name)) == "error" and len(words(name)) == 1
