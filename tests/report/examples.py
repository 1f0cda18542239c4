"""Runs and diagnoses made by hand, one for each thing a report has to show."""

from __future__ import annotations

import numpy as np

from traindx.model.findings import (
    Diagnosis,
    Evidence,
    Failed,
    Finding,
    Hypothesis,
    Location,
    Remedy,
    Severity,
    Skipped,
    Status,
    Strength,
    cite,
    cite_setting,
)
from traindx.model.run import (
    Artifact,
    Config,
    Event,
    Failure,
    Frame,
    Origin,
    Run,
    Series,
    Setting,
    Source,
)

STEPS = np.arange(0, 400, 2, dtype=np.float64)
ONSET = 240.0

TRAIN_PY = """\
import torch
from torch import nn

from data import loaders
from model import ResNet

def main() -> None:
    model = ResNet(depth=18)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.8, momentum=0.9)
    train, val = loaders(batch_size=128)
    for epoch in range(30):
        for images, labels in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        print(evaluate(model, val))

if __name__ == "__main__":
    main()
"""

PATCH = """\
--- a/train.py
+++ b/train.py
@@ -9 +9 @@
-    optimizer = torch.optim.SGD(model.parameters(), lr=0.8, momentum=0.9)
+    optimizer = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.9)
"""


def _series(name: str, values: np.ndarray, steps: np.ndarray = STEPS, first: int = 12) -> Series:
    places = first + np.arange(len(values), dtype=np.int64)
    return Series(
        name,
        np.asarray(values, dtype=np.float64),
        steps,
        Origin("train.log", name.replace("/", "_")),
        epochs=np.floor(steps / 40),
        places=places,
    )


def diverged_run() -> Run:
    rng = np.random.default_rng(7)
    loss = 0.35 + 2.0 * np.exp(-STEPS / 70) + rng.normal(0, 0.05, len(STEPS))
    late = STEPS > ONSET
    loss[late] *= np.exp((STEPS[late] - ONSET) / 22)
    loss[STEPS > 352] = np.nan
    norm = 1.1 + rng.gamma(2.0, 0.12, len(STEPS))
    norm[late] *= np.exp((STEPS[late] - ONSET) / 18)
    norm[STEPS > 352] = np.nan
    val_steps = np.arange(38, 400, 40, dtype=np.float64)
    val = 0.45 + 1.9 * np.exp(-val_steps / 70)
    val[6:] = [1.1, 7.9, np.nan, np.nan]
    rate = np.minimum(0.8, 0.8 * (STEPS + 2) / 60)
    layers = {
        f"layers/{layer}.weight/grad_norm": norm * scale * rng.uniform(0.8, 1.2, len(STEPS))
        for layer, scale in (("conv1", 0.3), ("layer1.0", 0.5), ("layer2.0", 0.8), ("fc", 1.4))
    }
    series = {"loss/train": loss, "grad_norm": norm, "lr": rate, **layers}
    made = {name: _series(name, values) for name, values in series.items()}
    made["loss/val"] = _series("loss/val", val, val_steps, 300)
    accuracy = np.array([0.31, 0.45, 0.52, 0.58, 0.61, 0.63, 0.49, 0.2, 0.1, 0.1])
    made["accuracy/val"] = _series("accuracy/val", accuracy, val_steps, 300)
    return Run(
        name="cifar10-resnet18",
        series=made,
        events=(
            Event("warning", "loss is NaN, skipping the logger", "train.log", "line 190", 354),
        ),
        failures=(
            Failure(
                "RuntimeError",
                "Function 'LogSoftmaxBackward0' returned nan values in its 0th output.",
                "train.log",
                "line 214",
                (Frame("train.py", 15, "main", "loss.backward()"),),
            ),
        ),
        sources=(Source("train.py", TRAIN_PY),),
        config=Config(
            (
                Setting("optimizer.lr", 0.8, "config.yaml", "line 4"),
                Setting("optimizer.momentum", 0.9, "config.yaml", "line 5"),
                Setting("batch_size", 128, "config.yaml", "line 7"),
            )
        ),
        artifacts=(
            Artifact("train.log", "console-log", ("3 lines could not be decoded",)),
            Artifact("config.yaml", "yaml"),
            Artifact("train.py", "source"),
        ),
    )


def diverged() -> tuple[Run, Diagnosis]:
    run = diverged_run()
    loss, norm = run.series["loss/train"], run.series["grad_norm"]
    spike = Finding(
        "The gradient norm grows without bound from step 240",
        Strength.STRONG,
        (
            cite(norm, "grad_norm rose 340-fold between steps 240 and 352", 120, 176, before=1.3),
            cite(norm, "grad_norm is NaN from step 354", 177),
        ),
        suggests={"lr-too-high": Strength.STRONG, "missing-gradient-clipping": Strength.MODERATE},
        onset=ONSET,
        detector="exploding-gradients",
    )
    divergence = Finding(
        "The training loss leaves its trend at step 244 and ends in NaN",
        Strength.STRONG,
        (cite(loss, "loss/train climbs from 0.42 to 66 between steps 244 and 352", 122, 176),),
        suggests={"lr-too-high": Strength.STRONG},
        is_symptom=True,
        onset=244.0,
        detector="diverging-loss",
    )
    configured = Finding(
        "SGD with momentum runs at a learning rate of 0.8",
        Strength.MODERATE,
        (
            cite_setting(run.config.settings[0]),
            Evidence("lr=0.8 is passed to SGD", "train.py", "line 9"),
        ),
        suggests={"lr-too-high": Strength.MODERATE},
        location=Location("train.py", 9, 9),
        patch=PATCH,
        detector="large-learning-rate",
    )
    shuffled = Finding(
        "The loss falls smoothly for the first 240 steps",
        Strength.WEAK,
        (cite(loss, "loss/train falls from 2.3 to 0.41", 0, 119),),
        against={"lr-too-high": Strength.WEAK, "bad-initialisation": Strength.MODERATE},
        detector="smooth-start",
    )
    accuracy = Finding(
        "Validation accuracy falls back to chance",
        Strength.WEAK,
        (cite(run.series["accuracy/val"], "accuracy/val falls from 0.63 to 0.10", 5, 9),),
        detector="accuracy-collapse",
    )
    return run, Diagnosis(
        status=Status.COMPLETE,
        summary="The loss diverges at step 240 and ends in NaN: the learning rate is too high.",
        hypotheses=(
            Hypothesis(
                "lr-too-high",
                0.947,
                "The learning rate is too high",
                Severity.CRITICAL,
                findings=(spike, divergence, configured),
                opposing=(shuffled,),
                consequences=("exploding-activations", "fp16-overflow"),
                remedies=(
                    Remedy(
                        "Reduce optimizer.lr from 0.8 to 0.4",
                        "grad_norm stays near its median and the loss falls past step 240",
                        "rerun past step 240 with the gradient norm logged",
                        "halve it once more; an onset that stays clears the learning rate",
                        PATCH,
                    ),
                    Remedy(
                        "Clip the gradient norm (max_norm=1.0) before the optimizer step",
                        "single spikes leave no mark on the loss",
                        "log the norm before clipping: it may spike, the loss must not",
                        "if it clips every step, the learning rate is still too high",
                    ),
                ),
                specialist="debugging-techniques",
                confirm_by="a rerun with half the learning rate",
            ),
            Hypothesis(
                "missing-gradient-clipping",
                0.78,
                "Nothing bounds a single update",
                Severity.HIGH,
                findings=(spike,),
                confirm_by="a rerun with clipping at 1.0",
            ),
            Hypothesis(
                "bad-batch",
                0.22,
                "One batch holds broken values",
                Severity.MEDIUM,
                findings=(spike,),
                confirm_by="the batch of step 240, as `traindx run` keeps it",
            ),
            Hypothesis(
                "bad-initialisation",
                0.04,
                "The weights start too large",
                Severity.MEDIUM,
                opposing=(shuffled,),
                confirm_by="the gradient norms of the first ten steps",
            ),
        ),
        findings=(spike, divergence, configured, shuffled, accuracy),
        checked=(
            "exploding-gradients",
            "diverging-loss",
            "large-learning-rate",
            "smooth-start",
            "accuracy-collapse",
            "overfitting",
            "plateau",
            "vanishing-gradients",
            "loss-spike",
        ),
        skipped=(
            Skipped(
                "loss-scale-collapse", ("loss_scale",), "log the loss scale, or use traindx run"
            ),
            Skipped("dead-relu", ("layers/*/zero_fraction",), "use traindx run"),
            Skipped("slow-dataloader", ("throughput|time/*",), "log the time of a step"),
            Skipped("idle-gpu", ("throughput|time/*",), "log the time of a step"),
        ),
        failed=(Failed("rank-divergence", "KeyError: 'rank'"),),
        questions=("Which batch was trained on at step 240?",),
        artifacts=run.artifacts,
        duration_s=0.84,
        folded={"missing-gradient-clipping": "lr-too-high"},
    )


def healthy() -> tuple[Run, Diagnosis]:
    rng = np.random.default_rng(3)
    loss = 0.3 + 2.0 * np.exp(-STEPS / 90) + rng.normal(0, 0.03, len(STEPS))
    val_steps = np.arange(38, 400, 40, dtype=np.float64)
    run = Run(
        name="healthy",
        series={
            "loss/train": _series("loss/train", loss),
            "loss/val": _series("loss/val", 0.4 + 2.0 * np.exp(-val_steps / 90), val_steps, 300),
        },
        artifacts=(Artifact("train.log", "console-log"),),
    )
    return run, Diagnosis(
        status=Status.HEALTHY,
        summary="Nothing looks wrong: the loss falls and validation follows it.",
        checked=("diverging-loss", "plateau", "overfitting", "loss-spike", "nan-loss"),
        skipped=(
            Skipped(
                "exploding-gradients", ("grad_norm",), "log the gradient norm, or use traindx run"
            ),
            Skipped(
                "vanishing-gradients", ("grad_norm",), "log the gradient norm, or use traindx run"
            ),
            Skipped("missing-zero-grad", ("source",), "give the folder of the training code too"),
        ),
        artifacts=run.artifacts,
        duration_s=0.12,
    )


def undecided() -> tuple[Run, Diagnosis]:
    values = np.full(60, 2.302) + np.random.default_rng(1).normal(0, 0.002, 60)
    run = Run(
        name="stuck",
        series={"loss/train": _series("loss/train", values, np.arange(60.0))},
        artifacts=(Artifact("train.log", "console-log"),),
    )
    flat = Finding(
        "The training loss stays at ln(10)",
        Strength.MODERATE,
        (cite(run.series["loss/train"], "loss/train stays within 0.01 of 2.302", 0, 59),),
        suggests={"lr-too-low": Strength.MODERATE, "frozen-parameters": Strength.MODERATE},
        is_symptom=True,
        onset=0.0,
        detector="plateau",
    )
    return run, Diagnosis(
        status=Status.INSUFFICIENT,
        summary="The loss does not move, and two causes explain it alike.",
        hypotheses=(
            Hypothesis(
                "frozen-parameters",
                0.46,
                "No parameter is trained",
                Severity.HIGH,
                findings=(flat,),
                confirm_by="the gradient norm, or the source of the training loop",
            ),
            Hypothesis(
                "lr-too-low",
                0.41,
                "The learning rate is too low",
                Severity.MEDIUM,
                findings=(flat,),
                confirm_by="the learning rate in use",
            ),
        ),
        findings=(flat,),
        checked=("plateau", "diverging-loss"),
        questions=("What is the learning rate?", "Does the optimizer get the model's parameters?"),
        artifacts=run.artifacts,
        duration_s=0.05,
    )


CASES = {"diverged": diverged, "healthy": healthy, "undecided": undecided}
