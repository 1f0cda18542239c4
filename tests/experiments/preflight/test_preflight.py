"""The checks before a long job: each on values, and two programs from end to end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx.cli.main import main
from traindx.examples import decay, flat, recorded, watched, weights
from traindx.experiments.changes import Change, Limits, Rerun
from traindx.experiments.preflight import checks, rehearsal
from traindx.experiments.preflight.forecast import DURATION, RunLength, duration, memory, plan_of
from traindx.experiments.preflight.overlap import LoaderExamples, Pass, overlap
from traindx.experiments.preflight.rehearsal import (
    RehearsedRun,
    listed_causes,
    runs,
    unless_busy,
    with_causes,
)
from traindx.model.findings import (
    Diagnosis,
    Evidence,
    Finding,
    Hypothesis,
    Severity,
    Status,
    Strength,
)
from traindx.model.preflight import Check, Checklist, Outcome
from traindx.model.recording import Counts, Epoch, Loader, LossInput, Process, Summary
from traindx.model.run import Failure, Run, Source

GB = float(1 << 30)


def outcome(check: Check) -> str:
    return {Outcome.PASSED: "✓", Outcome.FAILED: "✗", Outcome.OPEN: "–"}[check.outcome]


# --- the first loss


def started(loss: float, given: LossInput, *more: LossInput) -> Run:
    process = watched(*weights("0.weight"), loss=loss, losses=(given, *more))
    return recorded(process, loss_train=[loss, 0.9 * loss])


def classes(depth: float, count: int = 10, kind: str = "cross_entropy") -> LossInput:
    return LossInput(kind, prediction=Summary(mean=-depth), classes=count)


def binary(size: float, kind: str = "bce_with_logits") -> LossInput:
    return LossInput(kind, prediction=Summary(mean=0.0, std=size), classes=2)


def squared(output: float, target: float) -> LossInput:
    return LossInput(
        "mse_loss", prediction=Summary(mean=0.0, std=output), target=Summary(mean=0.0, std=target)
    )


@pytest.mark.parametrize(
    ("loss", "given", "expected"),
    [
        (2.38, classes(2.4), "✓"),
        (10.9, classes(11.0, 50257), "✓"),
        (0.4, classes(6.0), "✓"),  # learnt before
        (3.2, classes(3.4), "✓"),
        (27.0, classes(30.0, 27), "✗"),
        (104.0, classes(160.0, 2), "✗"),
        (147.0, classes(2.4), "–"),  # summed over the batch
        (4.5, classes(4.6), "–"),  # wide logits, not absurd
        (0.72, binary(0.3), "✓"),
        (40.0, binary(60.0), "✗"),
        (35.0, binary(0.3), "–"),  # a weight of the positive class
        (30.0, binary(0.5, "bce"), "–"),
        (1.1, squared(0.3, 1.0), "✓"),
        (900.0, squared(30.0, 1.0), "✗"),
        (0.1, squared(0.3, 1e-3), "–"),  # targets on a small scale
        (64.0, squared(0.3, 1.0), "–"),  # summed
        (1.0, LossInput("kl_div"), "–"),
        (nan, classes(2.4), "✗"),
        (60.0, replace(classes(80.0), producer="mul"), "–"),  # a margin, or a temperature
        (60.0, replace(classes(80.0), prediction=Summary(shape=(10, 10), mean=-80.0)), "–"),
    ],
)
def test_the_first_loss_against_that_of_guessing(
    loss: float, given: LossInput, expected: str
) -> None:
    assert outcome(checks.first_loss(started(loss, given))) == expected


def test_a_first_loss_of_several_terms_is_not_judged() -> None:
    assert outcome(checks.first_loss(started(60.0, classes(80.0), squared(1.0, 1.0)))) == "–"


def test_losses_that_pull_at_each_other_are_not_judged() -> None:
    run = started(60.0, classes(80.0))
    adversarial = replace(run, series={"loss/train/generator": run.series["loss/train"]})
    assert outcome(checks.first_loss(adversarial)) == "–"


def test_the_sample_of_a_later_step_is_not_the_start() -> None:
    run = started(60.0, classes(80.0))
    process = run.recording.processes[0]  # type: ignore[union-attr]
    late = replace(process, samples=process.samples[2:])
    assert outcome(checks.first_loss(recorded(late, loss_train=[60.0]))) == "–"


# --- one batch


def on_one_batch(losses: Any, *, means: Sequence[float] = (4.5,), **series: Any) -> Run:
    process = watched(*weights("0.weight"))
    samples = tuple(
        replace(
            s,
            losses=(
                LossInput("cross_entropy", classes=10, target=Summary(mean=means[i % len(means)])),
            ),
        )
        for i, s in enumerate(process.samples)
    )
    return recorded(replace(process, samples=samples), loss_train=losses, **series)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        (decay(200, 2.3, 0.01), "✓"),
        (decay(200, 2.3, 1.6, noise=0.001), "–"),  # it learns
        (flat(200, 2.3, noise=0.01), "✗"),
        (np.linspace(2.3, 2.29, 200), "–"),  # slowly
        (flat(30, 2.3, noise=0.01), "–"),
        (np.r_[np.linspace(100, 2.4, 60), flat(140, 2.302, noise=1e-4)], "✗"),  # to chance only
        ([*decay(100, 2.3, 1.0), *[nan] * 20], "✗"),
        (-decay(200, 2.3, 0.01), "–"),
        (flat(200, 0.4, noise=0.01), "–"),  # learnt before
    ],
)
def test_one_batch_again_and_again(losses: Any, expected: str) -> None:
    assert outcome(checks.one_batch(on_one_batch(losses), 199)) == expected


def test_one_batch_is_not_judged_where_something_else_may_be_why() -> None:
    stuck = flat(200, 2.3, noise=0.01)
    assert outcome(checks.one_batch(on_one_batch(stuck), 0)) == "–"  # no DataLoader
    assert outcome(checks.one_batch(on_one_batch(stuck, means=(4.5, 4.1)), 199)) == "–"  # random
    small = on_one_batch(stuck)
    process = small.recording.processes[0]  # type: ignore[union-attr]
    slight = tuple(replace(s, update_ratios=(1e-7,)) for s in process.samples)
    small = recorded(replace(process, samples=slight), loss_train=stuck)
    assert outcome(checks.one_batch(small, 199)) == "–"
    rising = on_one_batch(stuck, lr=np.linspace(1e-6, 1e-4, 200))
    assert outcome(checks.one_batch(rising, 199)) == "–"


# --- parameters


def test_parameters_that_get_a_gradient_and_move() -> None:
    names = ("stem.weight", "aux.weight", "body.weight", "head.weight")
    well = watched(*weights(*names))
    spare = watched(*weights(*names), grads=(0.1, None, 0.1, 0.1), still=("aux.weight",))
    cut = watched(*weights(*names), grads=(None, None, None, 0.1), still=names[:3])
    assert outcome(checks.parameters(recorded(well))) == "✓"
    told = checks.parameters(recorded(spare))
    assert outcome(told) == "–" and "aux.weight" in told.says
    assert outcome(checks.parameters(recorded(cut))) == "✗"
    assert outcome(checks.parameters(recorded(replace(well, samples=well.samples[:2])))) == "–"


def test_weights_that_never_move() -> None:
    still = watched(*weights("0.weight"), still=("0.weight",))
    assert outcome(checks.parameters(recorded(still))) == "✗"
    optimizers = tuple(replace(o, groups=({"lr": 0.0},)) for o in still.optimizers)
    assert outcome(checks.parameters(recorded(replace(still, optimizers=optimizers)))) == "–"
    young = replace(still, counts=Counts(99, steps=2, backwards=2, has_moved=False))
    assert outcome(checks.parameters(recorded(young))) == "–"


# --- inputs


def with_batch(*batch: Summary) -> Run:
    return recorded(watched(*weights("0.weight"), batch=batch))


def test_inputs() -> None:
    table = Summary("0", (32, 8), "float32", mean=0.1, std=1.0)
    assert outcome(checks.inputs(with_batch(table))) == "✓"
    assert outcome(checks.inputs(with_batch(replace(table, std=70.0, mean=130.0)))) == "–"
    assert outcome(checks.inputs(with_batch(replace(table, nonfinite=3)))) == "✗"
    assert outcome(checks.inputs(with_batch(Summary("0", (32, 8), "int64")))) == "–"
    assert outcome(checks.inputs(with_batch())) == "–"
    raw = Evidence("the inputs have mean 130", "rank0.jsonl")
    assert outcome(checks.inputs(with_batch(table), [raw])) == "✗"


# --- determinism


def with_losses(losses: Any, text: str = "") -> Run:
    run = recorded(Process(), loss_train=losses)
    loss = run.series["loss/train"]
    told = replace(loss, origin=replace(loss.origin, artifact="rank0.jsonl"))
    sources = (Source("t.py", text),) if text else ()
    return replace(run, series={"loss/train": told}, sources=sources)


def test_the_same_losses_twice() -> None:
    first = with_losses(decay(20))
    assert outcome(checks.determinism(first, first)) == "✓"
    apart = with_losses([*decay(20)[:7], *decay(20, seed=1)[7:]])
    told = checks.determinism(first, apart)
    assert outcome(told) == "–" and "step 7" in told.says
    assert outcome(checks.determinism(first, recorded())) == "–"
    printed = recorded(Process(), loss_train=decay(20))
    assert outcome(checks.determinism(printed, printed)) == "–"


def test_a_seed_that_does_not_hold() -> None:
    seeded = with_losses(decay(20), "torch.manual_seed(0)")
    other = with_losses(decay(20, seed=1))
    nearly = with_losses(decay(20) * (1 + 1e-7))
    assert outcome(checks.determinism(seeded, other)) == "✗"
    assert outcome(checks.determinism(seeded, nearly)) == "–"


def test_losses_are_compared_step_by_step() -> None:
    """A recorder in a hurry leaves steps out, not the same ones each time."""
    whole = with_losses(decay(20))
    some = replace(whole, series={"loss/train": whole.series["loss/train"].take([0, 3, 9])})
    assert "all 3 steps" in checks.determinism(whole, some).says


# --- overlap

FED = (Pass(50, 50, True),)


def loader(id: int, rows: Any, passes: Sequence[Pass] = FED, **more: Any) -> LoaderExamples:
    marks = frozenset(str(r) for r in rows)
    given = {"dataset": id, "size": len(marks), "met": len(marks), **more}
    return LoaderExamples(id, rows=marks, passes=tuple(passes), **given)


TESTED = (Pass(2, 0, True, after=0),)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (loader(1, range(800, 1000), TESTED), "✓"),
        (loader(1, range(700, 900), TESTED), "✗"),
        (loader(1, range(100, 300), TESTED), "✗"),
        (loader(1, range(797, 1000), TESTED), "✓"),  # three copies
        (loader(1, range(800), TESTED), "–"),  # the training data themselves
        (loader(1, range(700, 900), (), is_peeked=True), "✗"),  # not asked yet
        (loader(1, range(700, 900), (), is_peeked=True, is_shuffled=True), "–"),
        (loader(1, range(700, 900), FED), "–"),  # trained on as well
        (loader(1, range(700, 900), (Pass(2, 0, True),)), "✗"),
        (loader(1, (), TESTED), "–"),
    ],
)
def test_examples_of_two_loaders(held: LoaderExamples, expected: str) -> None:
    train = loader(0, range(800))
    assert outcome(overlap([train, held])) == expected


def test_examples_that_repeat_by_themselves() -> None:
    train = loader(0, range(16), size=800, met=800, repeated=784)
    assert outcome(overlap([train, loader(1, range(16), TESTED, size=200)])) == "✓"


def test_part_of_the_training_data_is_enough() -> None:
    train = loader(0, range(0, 8000, 10), size=8000)
    assert outcome(overlap([train, loader(1, range(7000, 9000), TESTED)])) == "✗"
    assert outcome(overlap([train, loader(1, range(8000, 9000), TESTED)])) == "✓"


def test_a_check_on_training_data_beside_real_validation() -> None:
    train, held = loader(0, range(800)), loader(1, range(800, 1000), TESTED)
    assert outcome(overlap([train, held, loader(2, range(100), TESTED)])) == "–"


def test_subsets_are_compared_by_their_indices() -> None:
    def part(id: int, indices: Any, passes: Any) -> LoaderExamples:
        chosen = None if indices is None else frozenset(indices)
        return loader(id, (), passes, dataset=7, size=1000, is_plain=True, indices=chosen)

    def judged(train: Any, held: Any) -> str:
        return outcome(overlap([part(0, train, FED), part(1, held, TESTED)]))

    assert judged(range(800), range(800, 1000)) == "✓"
    assert judged(range(900), range(800, 1000)) == "✗"
    assert judged(None, range(800, 1000)) == "✗"
    assert judged(range(800), None) == "✗"
    assert judged(None, None) == "–"


def test_folds_are_compared_with_the_data_they_follow() -> None:
    first, second = loader(0, range(800)), loader(2, range(200, 1000))
    tests = [
        loader(1, range(800, 1000), (Pass(2, 0, True, after=0),)),
        loader(3, range(200), (Pass(2, 0, True, after=2),)),
    ]
    assert outcome(overlap([first, second, *tests])) == "✓"


def test_without_loaders_nothing_is_said() -> None:
    assert outcome(overlap([])) == "–"


# --- memory, time, length


def grown(values: Sequence[float], epochs: int = 0) -> Run:
    passes = tuple(Epoch(5, 0, 50, 50 * (i + 1), trained=50) for i in range(epochs))
    process = Process(epochs=passes, counts=Counts(9, steps=200, backwards=200))
    return recorded(process, memory_rss=values)


LINE = [GB * (1 + 0.02 * i) for i in range(20)]


@pytest.mark.parametrize(
    ("values", "epochs", "plan", "expected"),
    [
        ([GB] * 20, 2, RunLength(10_000, 50), "✓"),
        (LINE, 2, RunLength(10_000, 50, "--epochs 200"), "✗"),
        (LINE, 2, RunLength(100, 50, "--epochs 2"), "–"),
        (LINE, 0, RunLength(10_000, 50), "–"),  # a cache may fill in the first pass
        (LINE, 0, RunLength(10_000, 5000), "✗"),  # and would not fit either
        (LINE, 2, RunLength(), "–"),
        ([GB * (1 + 0.5 * (1 - 0.6**i)) for i in range(20)], 2, RunLength(10_000, 50), "✓"),
        ([GB * (1 + 0.2 * (i % 5)) for i in range(20)], 2, RunLength(10_000, 50), "✓"),
        ([15.5 * GB] * 20, 2, RunLength(), "–"),
        ([GB], 0, RunLength(), "–"),
    ],
)
def test_memory_for_the_whole_run(
    values: Sequence[float], epochs: int, plan: RunLength, expected: str
) -> None:
    assert outcome(memory(grown(values, epochs), plan, int(16 * GB))) == expected


def test_time_for_the_whole_run() -> None:
    run = recorded(Process(), time_step=[2.0, *[0.1] * 20], time_data=[1.0, *[0.01] * 20])
    told = duration(run, RunLength(36_000, 500, "--epochs 72"), 4.0)
    assert outcome(told) == "✓" and "10%" in told.says and "60 min" in told.says
    waits = recorded(Process(), time_step=[0.1] * 20, time_data=[0.09] * 20)
    assert outcome(duration(waits, RunLength(0, 500), None)) == "–"
    assert outcome(duration(recorded(Process()), RunLength(), None)) == "–"


def planned(argv: Sequence[str] = (), text: str = "", *, is_complete: bool = False) -> RunLength:
    process = Process(
        argv=tuple(argv),
        loaders=(Loader(1, 0, batches=100), Loader(2, 1, batches=9)),
        epochs=(Epoch(3, 1, 9, 100, trained=0),),
        counts=Counts(9, steps=120, backwards=240),
    )
    run = replace(recorded(process), sources=(Source("train.py", text),) if text else ())
    return plan_of(run, is_complete=is_complete)


def test_the_length_of_the_whole_run() -> None:
    assert planned().steps == 0 and planned().epoch_steps == 50  # every second batch steps
    assert planned(["train.py", "--epochs", "30"]).steps == 1500
    assert planned(["train.py", "trainer.max_epochs=4"]).steps == 200
    assert planned(["train.py", "--max-steps", "777"]).steps == 777
    assert planned(text="EPOCHS = 12\nfor epoch in range(EPOCHS): pass").steps == 600
    assert planned(text="for epoch in range(1, 11): pass").steps == 500
    assert planned(text="L.Trainer(max_epochs=3)").steps == 150
    assert planned(text="for epoch in range(args.epochs): pass").steps == 0
    assert planned(text="def broken(").steps == 0
    assert planned(is_complete=True).steps == 120
    assert planned(["train.py", "--epochs", "2"]).steps == 0  # it has taken more already


# --- the diagnosis, and the whole


def hypothesis(cause: str, detector: str = "some") -> Hypothesis:
    cited = Evidence("seen", "rank0.jsonl", "line 3")
    finding = Finding("claim", Strength.STRONG, (cited,), detector=detector)
    return Hypothesis(cause, 0.95, "It is so.", Severity.HIGH, findings=(finding,))


def test_a_listed_cause_fails_its_check() -> None:
    well = checks.passed(*checks.FIRST_LOSS, "fine")
    failed = with_causes(well, [hypothesis("bad-initialisation"), hypothesis("lr-too-high")])
    assert outcome(failed) == "✗" and failed.causes == ("bad-initialisation",)
    assert failed.severity is Severity.HIGH and failed.says == "It is so"
    assert with_causes(well, [hypothesis("lr-too-high")]) is well


def test_times_on_a_busy_machine_are_not_judged() -> None:
    timed = checks.passed(*DURATION, "1 s a step")
    failed = with_causes(timed, [hypothesis("data-loading-bound")])
    assert unless_busy(failed, 0.7) is failed
    calm = unless_busy(failed, 5.0)
    assert outcome(calm) == "–" and calm.causes == ("data-loading-bound",)
    other = with_causes(checks.passed(*checks.INPUTS, ""), [hypothesis("nan-in-data")])
    assert unless_busy(other, 5.0) is other


def test_that_we_stopped_it_is_no_cause() -> None:
    killed = Diagnosis(
        Status.COMPLETE, "", (hypothesis("killed-by-host", "command-ended-by-signal"),)
    )
    assert listed_causes(killed, is_cut=True) == []
    assert len(listed_causes(killed, is_cut=False)) == 1


def look(run: Run, **how: Any) -> RehearsedRun:
    return RehearsedRun(Rerun(Change(), 1, Path(), **how), run)


def test_whether_it_runs() -> None:
    trained = recorded(Process(counts=Counts(9, steps=20, backwards=20)))
    assert outcome(runs(look(trained, exit_code=0, stopped="steps"))) == "✓"
    assert outcome(runs(look(trained, stopped="time"))) == "✓"
    broken = replace(trained, failures=(Failure("RuntimeError", "shapes", "output.log"),))
    told = runs(look(broken, exit_code=1))
    assert outcome(told) == "✗" and "RuntimeError: shapes" in told.says
    slow = runs(look(Run(), stopped="time", duration_s=40.0))
    assert outcome(slow) == "–" and "--max-time" in slow.says


def test_an_interrupt_gives_what_is_known() -> None:
    def interrupted(change: Change, seed: int, limits: Limits) -> Rerun:
        raise KeyboardInterrupt

    made = rehearsal.preflight(interrupted, ["python", "train.py"])
    assert made.is_interrupted and made.verdict == "unknown"


def test_nothing_that_ran_is_not_ready(tmp_path: Path) -> None:
    def empty(change: Change, seed: int, limits: Limits) -> Rerun:
        return Rerun(change, seed, tmp_path, exit_code=0)

    made = rehearsal.preflight(empty, ["true"])
    assert made.verdict == "unknown" and not made.failed


def test_the_most_severe_comes_first() -> None:
    def failing(name: str, severity: Severity) -> Check:
        return Check(name, name, Outcome.FAILED, name, (), severity)

    made = Checklist((), (failing("a", Severity.LOW), failing("b", Severity.HIGH)), steps=3)
    assert [c.name for c in made.failed] == ["b", "a"]
    assert made.summary == "Fix this first: b (1 more below)."


PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(600, 12)
y = (x @ torch.randn(12, 3)).argmax(1)
held = torch.arange({first}, {first} + 100)
train = DataLoader(TensorDataset(x[:500], y[:500]), batch_size=25, shuffle=True)
val = DataLoader(TensorDataset(x[held], y[held]), batch_size=50)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(50):
    for a, b in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        model.eval()
        print(epoch, sum((model(a).argmax(1) == b).sum().item() for a, b in val))
        model.train()
    open("log.txt", "a").write("epoch\\n")
"""


def checked(
    folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, Mapping[str, Any]]:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (folder / "train.py").write_text(text)
    options = ["--format", "json", "--fail-on", "high", "--max-time", "240"]
    code = main(["run", "--preflight", *options, "--", sys.executable, "train.py"])
    told: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    assert os.listdir(folder) == ["train.py"]  # noqa: PTH208 - the copy has the rest
    return code, told


def test_a_program_whose_validation_overlaps_and_that_is_well_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = checked(tmp_path, PROGRAM.format(first=450), monkeypatch, capsys)
    outcomes = {c["check"]: c["outcome"] for c in told["checks"]}
    assert outcomes.pop("overlap") == "failed"
    assert set(outcomes.values()) == {"passed"}, told["checks"]
    assert told["verdict"] == "fix_first" and code == 1


def test_a_program_that_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = PROGRAM.format(first=500).replace("Linear(64, 3)", "Linear(32, 3)")
    code, told = checked(tmp_path, broken, monkeypatch, capsys)
    failed = [c for c in told["checks"] if c["outcome"] == "failed"]
    assert [c["check"] for c in failed] == ["runs"] and "shape" in failed[0]["says"]
    assert failed[0]["causes"] == ["shape-mismatch"] and code == 1


def test_one_of_two_ways_to_rerun(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--preflight", "--verify", "--", "true"]) == 2
    assert main(["run", "--preflight", "--format", "sarif", "--", "true"]) == 2
    assert "--format json" in capsys.readouterr().err


def test_guessing_is_known() -> None:
    assert checks._guess(started(2.0, classes(2.0, 7))) == log(7)
