"""What detectors may need of a run: what it is called, and how to get it.

A need is a kind of content (`config`, `source`, `failure` …) or a pattern of the names of series;
`a|b` is met by one of the two. Every need of a detector is declared here, as a whole or part by
part, so that nobody is asked for a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass

_RUN = "use traindx run"
_EITHER = re.compile(r"\[[^\]]*(\w)\]")  # `[Ee]` is an e to whoever reads it
_ANYTHING = re.compile(r"[*?\[\]!]+")


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a check waits for, in the words of those who have it."""

    what: str
    how: str
    is_recorded: bool = False  # `traindx run` gives it as well

    def way(self, *, has_recording: bool = False) -> str:
        """Say how to get it; whoever has a recording need not be told to make one."""
        return f"{self.how}, or {_RUN}" if self.is_recorded and not has_recording else self.how


_LOG = "pass the console log"
_TRAINING_LOSS = Need("the training loss", "log the training loss", True)
_WEIGHT_NORM = Need("the norm of the weights", "log the norm of the weights", True)

NEEDS: Mapping[str, Need] = {
    # what a run left behind
    "recording": Need("a recording by traindx run", _RUN),
    "step": Need("a step captured by traindx run", _RUN),
    "source": Need("the training code", "pass the training script"),
    "config": Need(
        "the config", "pass the configuration (YAML, JSON, TOML or the printed arguments)"
    ),
    "failure": Need("a traceback", "pass the traceback, where the run crashed"),
    "events": Need("the console log", _LOG),
    "samples": Need("outputs of the model", "pass a log or file with outputs of the model"),
    "architecture": Need("the parameters of the model", "pass a checkpoint or a model summary"),
    "checkpoint": Need("a checkpoint", "pass a checkpoint"),
    "checkpoints": Need("two checkpoints", "pass two checkpoints of the run"),
    "failure|events": Need("a traceback or the console log", f"pass the traceback, or {_LOG}"),
    "recording|events": Need("a recording by traindx run or the console log", f"{_RUN}, or {_LOG}"),
    # losses
    "loss": _TRAINING_LOSS,
    "loss/train": _TRAINING_LOSS,
    "loss/train*": _TRAINING_LOSS,
    "loss/*": Need("a loss", "log the loss", True),
    "loss|loss/*": Need("a loss", "log the loss", True),
    "loss|loss/*|failure": Need("a loss or a traceback", "log the loss, or pass the traceback"),
    "loss/train/*": Need("the terms of the loss", "log every term of the loss"),
    "loss/val*": Need(
        "the validation loss", "evaluate on held-out data every epoch and log its loss"
    ),
    "loss/val*|rmse/val*|mse/val*|mae/val*|perplexity/val*": Need(
        "the validation loss", "evaluate on held-out data every epoch and log its loss"
    ),
    "loss/val*|mse/val*|rmse/val*|mae/val*": Need(
        "the validation loss", "evaluate on held-out data every epoch and log its loss"
    ),
    "kl/*": Need("the KL to the reference policy", "log the KL to the reference policy"),
    "kl/*|loss/*/kl*": Need("the KL term", "log the KL term"),
    "perplexity/train": Need("the training perplexity", "log the training perplexity"),
    # scores
    "*/val*|*/test*": Need("a held-out metric", "evaluate on held-out data and log its metrics"),
    "accuracy/*|wer/*|cer/*": Need(
        "the accuracy or an error rate", "log the accuracy, or the word or character error rate"
    ),
    "f1/*|accuracy/*/*|recall/*": Need(
        "F1 or the score of each class", "log F1, or the recall of each class, beside the accuracy"
    ),
    "*/val*": Need("a validation metric", "evaluate on held-out data and log its metrics"),
    "accuracy/*": Need("the accuracy", "log the accuracy"),
    "accuracy/train": Need("the training accuracy", "log the training accuracy"),
    "accuracy/train*": Need("the training accuracy", "log the training accuracy"),
    "accuracy/val*": Need("the validation accuracy", "log the validation accuracy"),
    "r2/*": Need("R²", "log R² of the regression on held-out data"),
    "recall/*|f1/*|precision/*": Need(
        "recall, precision or F1", "log recall or F1 beside the accuracy"
    ),
    "accuracy/*/*|f1/*/*|map/*/*": Need(
        "a score for each task", "log the accuracy, F1 or mAP of each task"
    ),
    "accuracy/*|em/*|f1/*|recall/*|precision/*|map/*|bleu/*|rouge/*|iou/*|dice/*": Need(
        "a score such as accuracy, F1 or BLEU",
        "log a score of the model, such as accuracy, F1, mAP, BLEU or IoU",
    ),
    "accuracy/*|f1/*|r2/*|map/*|loss/val": Need(
        "the validation loss or a score", "log the validation loss, or a score such as accuracy"
    ),
    "accuracy/*|precision/*|recall/*|f1/*|auc/*|iou/*|dice/*": Need(
        "a score such as accuracy, F1 or AUC", "log a score such as accuracy, F1, AUC or IoU"
    ),
    "confusions|recall/*/class*|accuracy/*|f1/*|recall/*": Need(
        "the accuracy or a confusion matrix", "log the accuracy, or print a confusion matrix"
    ),
    "config|confusions": Need(
        "class counts or a confusion matrix", "pass a log with class counts or a confusion matrix"
    ),
    # optimisation
    "grad_norm": Need("the gradient norm", "log the gradient norm", True),
    "grad_norm|events": Need(
        "the gradient norm or the console log", f"log the gradient norm, or {_LOG}"
    ),
    "layers/*/grad_norm": Need("gradient norms per layer", "log gradient norms per layer", True),
    "weight_norm|layers/*/weight_norm": _WEIGHT_NORM,
    "lr": Need("the learning rate", "log the learning rate"),
    "lr|config": Need(
        "the learning rate or the config", "log the learning rate, or pass the config"
    ),
    "config|clip_max": Need("the gradient clipping threshold", "pass the configuration", True),
    "loss_scale": Need("the loss scale", "log the loss scale of mixed precision"),
    "loss_scale|events|failure": Need(
        "the loss scale, the console log or a traceback",
        f"log the loss scale of mixed precision, or {_LOG}",
    ),
    "time/*": Need("step times", "log how long a step and loading its data take", True),
    # what some kinds of models are watched by
    "other/*": Need(
        "further metrics of the model",
        "log further metrics, such as the spread of embeddings or predictions, activation norms or "
        "covered modes",
    ),
    "other/*[Ee]xpert*": Need("the load of each expert", "log the load of each expert"),
    "reward/*": Need("the reward", "log the reward"),
    "other/*explained_variance*": Need(
        "the explained variance of the critic", "log the explained variance of the critic"
    ),
    "other/*clipped_ratio*|other/*response_length/clip_ratio*": Need(
        "the share of completions that are cut off",
        "log the share of completions that end at the length limit",
    ),
    "other/reward_std": Need(
        "the spread of the rewards", "log the standard deviation of the rewards in each group"
    ),
    "entropy/*|loss/train/*entropy": Need(
        "the entropy of the policy", "log the entropy of the policy"
    ),
}


def without(need: str, had: Container[str]) -> str:
    """Return what is still to be asked for of a need, without the parts that were looked at."""
    return "|".join(part for part in need.split("|") if part not in had)


def need_of(need: str) -> Need:
    """Return a need as it is declared; a plugin's own is put together from its parts."""
    if need in NEEDS:
        return NEEDS[need]
    parts = [NEEDS.get(part) or _unknown(part) for part in need.split("|")]
    return Need(
        " or ".join(dict.fromkeys(p.what for p in parts)),
        ", or ".join(dict.fromkeys(p.how for p in parts)),
        any(p.is_recorded for p in parts),
    )


def _unknown(pattern: str) -> Need:
    """Describe the series of a pattern by what is left of its name without the wildcards."""
    words = _ANYTHING.sub(" ", _EITHER.sub(r"\1", pattern)).replace("/", " ").replace("_", " ")
    name = " ".join(words.split()).removeprefix("other ") or "more metrics"
    return Need(name, f"log {name}")
