"""Words by which a message names a cause: one table for all peers, in their favour where in doubt.

Each cause has patterns that are searched without regard to case in what an alarm says. A pattern
must tell the cause from its symptom: "loss is NaN" names nothing, "learning rate too high" does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

GAP = ".{0,60}?"  # stands for `~`
HIGH = r"(too )?(high|large|big|hot|aggressive)"
LOW = r"(too )?(low|small|tiny)"
RATE = r"(learning[ _-]?rate|\blr\b)"
NO = r"(no|not|never|missing|without|forgot|forgotten|lack)"
NOT_UPDATED = r"((not|never|n.t|no) ~(updat|chang|train|optimi)|(parameter|weight)s? ~unchanged)"

NAMES: dict[str, tuple[str, ...]] = {
    # optimisation
    "lr-too-high": (f"{RATE}~{HIGH}", f"(reduce|lower|decrease) ~{RATE}", f"{HIGH} ~{RATE}"),
    "lr-too-low": (f"{RATE}~{LOW}", f"(increase|raise) ~{RATE}", f"{LOW} ~{RATE}"),
    "lr-zero": (f"{RATE} ?(is|=|==)? ?(exactly )?(0\\b|zero)", f"zero ~{RATE}", f"{RATE}~ zero"),
    "lr-schedule-misuse": (r"schedul", f"{RATE}~(jump|decay|schedule|chang)"),
    "missing-warmup": (r"warm-?up",),
    "missing-gradient-clipping": (r"(gradient )?clip", r"max_grad_norm"),
    "gradient-clipping-too-tight": (r"clip~(tight|low|small|strong|aggressive)",),
    "weight-decay-too-high": (r"weight[ _]decay~(high|large|strong)", r"reduce ~weight[ _]decay"),
    "batch-too-small": (r"batch[ _]?size~(small|low)", r"small ~batch", r"increase ~batch"),
    "config-not-applied": (r"config~(ignored|unused|not applied)", r"overrid"),
    "missing-optimizer-step": (f"{NO} ~step\\(", r"optimizer\.step", r"step\(\)~(missing|never)"),
    "missing-zero-grad": (r"zero_grad", r"accumulat~gradient", r"gradients?~accumulat"),
    "missing-backward": (r"backward\(?\)?~(missing|never|not called)", f"{NO} ~backward"),
    "gradients-cleared-before-step": (r"zero_grad", r"gradients? ~(cleared|zeroed)"),
    "gradient-accumulation-unscaled": (r"accumulation", r"divide ~loss"),
    "clip-after-step": (r"clip~after ~step", r"clip~order"),
    "parameters-not-in-optimizer": (
        r"(belong|in|regist|pass|given)~ optimizer", r"optimizer~(missing|lacks|does ?n.t|not)",
        r"not ~optimizer",
    ),
    "frozen-parameters": (r"frozen", r"requires_grad", r"freez"),
    "detached-loss": (r"detach", f"{NO} ~grad_fn", r"does not require grad", r"no_grad"),
    "resume-without-optimizer-state": (r"optimizer ~state",),
    "vanishing-gradients": (r"vanish", r"gradients? ~(too small|near zero|tiny)"),
    "bad-initialisation": (r"initiali[sz]", r"\binit\b"),
    "dead-relu": (r"dead ~(unit|relu|neuron)", r"dying relu", r"inactive ~(unit|neuron)"),
    "saturated-activations": (r"saturat",),
    "softmax-before-cross-entropy": (r"softmax", r"logits", r"all > 0 and < 1"),
    "loss-expects-probabilities": (r"probabilit", r"sigmoid", r"BCE", r"log_softmax"),
    "wrong-loss-for-task": (r"wrong loss", r"loss function", r"criterion"),
    "target-shape-broadcast": (r"broadcast", r"target ~(shape|size)"),
    "insufficient-capacity": (r"capacity", r"underfit", r"model ~too small"),
    "data-distribution-change": (r"distribution ~(chang|shift)", r"data ~chang"),
    "outlier-batch": (r"(bad|outlier|corrupt|single|anomalous) ~(batch|sample)", r"outlier"),
    "competing-losses": (r"(loss(es)?|terms?) ~(weight|dominat|balanc|compet)",),
    # architecture
    "unregistered-submodules": (r"ModuleList", r"(not|un)[ -]?regist", r"plain list"),
    "missing-super-init": (r"super\(",),
    "missing-nonlinearity": (r"non-?linearit", r"activation function"),
    "too-deep-without-skip": (r"(skip|residual)", r"too deep"),
    "unused-parameters": (r"unused", r"zombie", r"(never|not) ~(used|call|receiv)", "no gradient"),
    "embedding-dominated-model": (r"embedding",),
    "shape-mismatch": (r"shape", r"size mismatch"),
    "channel-mismatch": (r"channel", r"layout"),
    "output-size-mismatch": (r"(output|class|logit)~(size|number|count|dimension)",),
    "vocabulary-mismatch": (r"vocab", r"token ~(id|range)", r"embedding"),
    # autograd
    "in-place-modification": (r"in-?place",),
    "graph-freed": (r"graph ~(second|freed|twice)", r"retain_graph", r"second time"),
    "graph-retained-across-steps": (r"retain", r"graph ~(across|previous)"),
    "no-grad-training": (r"no_grad", r"does not require grad", f"{NO} ~grad_fn"),
    "incorrect-custom-backward": (r"custom ~(backward|function|autograd)", r"gradcheck"),
    "non-differentiable-operation": (r"(non-?|not )differentiable", r"argmax"),
    # checkpoints and randomness
    "state-dict-key-mismatch": (r"state[ _]dict", r"(missing|unexpected) key"),
    "state-dict-shape-mismatch": (r"state[ _]dict", r"size mismatch"),
    "incomplete-checkpoint": (r"checkpoint",),
    "corrupt-checkpoint": (r"corrupt ~checkpoint", r"checkpoint ~(corrupt|truncated|damaged)"),
    "unsafe-checkpoint": (r"weights_only", r"unsafe", r"pickle"),
    "unseeded-randomness": (r"seed",),
    # collapse
    "class-collapse": (r"(one|single|same) class", r"class ~collapse", r"majority"),
    "constant-prediction": (r"constant ~(output|prediction)", r"same ~(output|prediction)"),
    "repetition-collapse": (r"repet",),
    "generator-mode-collapse": (r"mode collapse", r"generator"),
    "posterior-collapse": (r"posterior", r"\bKL\b"),
    "representation-collapse": (r"(rank|representation|embedding)s? ~collapse",),
    "policy-entropy-collapse": (r"entropy",),
    # data
    "unnormalised-inputs": (r"normali[sz]", r"input ~(scale|range)", r"standardi[sz]"),
    "unnormalised-targets": (r"target ~(normali[sz]|scale)", r"normali[sz]e ~target"),
    "degenerate-batch": (r"(duplicate|identical|same|degenerate|constant|empty) ~(batch|sample)",),
    "unshuffled-training-data": (r"shuffl",),
    "padding-in-loss": (r"padding", r"ignore_index", r"\bpad\b"),
    "augmentation-in-validation": (r"augment",),
    "misaligned-labels": (r"label", r"misalign"),
    "worker-crash": (r"worker",),
    # environment
    "killed-by-host": (r"killed", r"out of memory", r"\bOOM\b"),
    "disk-full": (r"disk", r"no space"),
    "version-mismatch": (r"version", r"deprecat", r"removed"),
    # generalisation
    "overfitting": (r"overfit", r"memori[sz]"),
    "data-leakage": (r"leak",),
    "evaluating-on-training-data": (r"leak", r"(evaluat|validat)~ train(ing)? (data|set)"),
    "training-in-eval-mode": (r"eval(uation)? mode", r"\.train\(\)", r"train\(\)~(missing|not)"),
    "validation-in-train-mode": (r"model\.eval", r"eval\(\)", r"train(ing)? mode"),
    "batchnorm-small-batch": (r"batch ?norm",),
    "empty-validation": (r"empty ~(valid|eval|loader)", r"(valid|eval)\w* ~empty"),
    "preprocessing-mismatch": (r"preprocess", r"normali[sz]ation ~differ"),
    "metric-bug": (r"metric ~(bug|wrong|comput)",),
    "distribution-shift": (r"(distribution|domain) ~shift",),
    "class-imbalance": (r"imbalanc", r"class ~weight"),
    "label-noise": (r"(label|target)s? ~(nois|corrupt|shuffl|random|wrong)", r"(nois|mislabel)"),
    "catastrophic-forgetting": (r"forget",),
    # memory
    "graph-kept-alive": (r"retain~graph", r"\.item\(\)", r"detach", r"memory ~(leak|grow)"),
    "evaluation-with-grad": (r"no_grad", r"inference_mode"),
    "host-memory-growth": (r"memory ~(leak|grow|creep|increas)",),
    # precision and numerics
    "clip-without-unscale": (r"unscale",),
    "missing-scaler-update": (r"scaler\.update", r"scaler"),
    "scaler-bypassed": (r"scaler", r"grad ?scal"),
    "half-precision-weights": (r"half|fp16|float16|bf16",),
    "deprecated-amp-api": (r"torch\.cuda\.amp", r"deprecated ~amp", r"torch\.amp"),
    "nan-in-data": (r"(nan|finite|inf) ~(data|input|batch|sample)", r"(data|input|batch)~ nan"),
    "unstable-operation": (r"\blog\b", r"sqrt", r"divi", r"epsilon|\beps\b", r"unstable"),
    "fp16-overflow": (r"fp16|float16|half|overflow",),
    "loss-scale-collapse": (r"loss scal", r"scaler"),
    "fully-masked-attention": (r"mask",),
    "exploding-activations": (r"(activation|output)s? ~(explo|large|overflow|grow)",),
    # performance
    "data-loading-bound": (r"input[- ]bound", r"data ?load", r"num_workers"),
    "checkpoint-overhead": (r"checkpoint",),
    "synchronisation-in-loop": (r"synchroni[sz]", r"\.item\(\)"),
    # tensors
    "device-mismatch": (r"device",),
    "dtype-mismatch": (r"dtype", r"(data ?)type mismatch", r"scalar type"),
    "index-out-of-range": (r"out of (range|bounds)", r"index"),
    "label-out-of-range": (r"(label|target|class)~ (out of|range|bounds|invalid)",),
    "non-contiguous-view": (r"contiguous",),
    "api-misuse": (r"argument", r"signature", r"TypeError", r"AttributeError"),
    "name-shadowed": (r"shadow", r"not callable"),
}  # fmt: skip


@cache
def _patterns(cause: str) -> tuple[re.Pattern[str], ...]:
    flags = re.IGNORECASE | re.DOTALL
    written = NAMES.get(cause) or (cause.replace("-", "[ -]"),)
    return tuple(re.compile(p.replace("~", GAP), flags) for p in written)


def names(text: str, causes: Iterable[str]) -> bool:
    """Tell whether a text names one of the causes."""
    return any(pattern.search(text) for cause in causes for pattern in _patterns(cause))
