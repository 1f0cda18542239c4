"""The comparison with other tools: where their lines go, and what counts as caught and named."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from bench.accuracy.incidents import Incident
from bench.accuracy.pages import Table
from bench.corpus.operators import all_operators
from bench.corpus.program import programs
from bench.peers import cases, page
from bench.peers.cases import Case, raised_in, run_with, sample
from bench.peers.insertion import NotApplicable, inserted
from bench.peers.naming import NAMES, names
from bench.peers.verdicts import Alarm, Outcome, Status, Verdict, count, judge

LOOP = """
class Model:
    def parameters(self):
        return [1.0]

class SGD:
    def __init__(self, parameters, lr):
        self.lr = lr
    def step(self):
        print("step")
    def zero_grad(self):
        pass

class Loss(float):
    def backward(self):
        pass

def main():
    model = Model()
    optimizer = SGD(model.parameters(), lr=0.1)
    for number in range(3):
        loss = Loss(number)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

main()
"""
TOLD = """
import sys
said = []
def attach(model, optimizer, is_classifier):
    said.append(f"{type(model).__name__} {optimizer.lr}")
def after_step(name, loss, optimizer):
    said.append(f"{name} {loss}")
def finish():
    return [{"rule": "r", "says": ", ".join(said), "adds": ""}]
"""
ONE_RANK_CAUSES_WITHOUT_WORDS = {
    "collective-mismatch", "ddp-unused-parameters", "missing-distributed-sampler", "rank-desync",
    "rank-failed-first", "rendezvous-failure", "sampler-epoch-not-set", "uneven-inputs",
}  # fmt: skip


def incident(cause: str | None, folder: Path = Path("nowhere"), **more: object) -> Incident:
    accepted = frozenset({cause} if cause else ())
    values: dict[str, object] = {
        "name": "a", "half": "develop", "folder": folder, "program": "mlp", "framework": "plain",
        "operator": "some", "strength": "", "injected": cause, "cause": cause,
        "accepted": accepted, "file": "train.py", "line": 12, "crashed": False,
    }  # fmt: skip
    return Incident(**{**values, **more})  # type: ignore[arg-type]


def said(*alarms: Alarm) -> Outcome:
    return Outcome("peer", "a", Status.USED, alarms)


def lines(text: str, original: str = LOOP) -> list[str]:
    made = inserted({"train.py": text}, {"train.py": original})["train.py"]
    return [x for x in made.splitlines() if "peer_watch" in x]


RATE = Alarm("lr", "Learning rate likely too high")
SPIKE = Alarm("spike", "Loss spiked", "Reduce the learning rate")


def test_lines_go_after_optimizer_and_step() -> None:
    made = inserted({"train.py": LOOP}, {"train.py": LOOP})["train.py"].splitlines()
    at = {x.strip(): n for n, x in enumerate(made)}
    attach = '__import__("peer_watch").attach(model, optimizer, 0, False)'
    step = '__import__("peer_watch").after_step("loss", loss, optimizer)'
    assert at[attach] == at["optimizer = SGD(model.parameters(), lr=0.1)"] + 1
    assert at[step] == at["optimizer.step()"] + 1


def test_missing_step_and_backward_still_get_a_line() -> None:
    no_step = LOOP.replace("        optimizer.step()\n", "")
    assert lines(no_step)[1].strip().endswith('after_step("loss", loss)')
    no_backward = LOOP.replace("        loss.backward()\n", "")
    assert lines(no_backward)[1].strip().endswith('after_step("loss", loss, optimizer)')


def test_model_is_the_one_of_the_original_and_may_be_made_later() -> None:
    other = LOOP.replace("SGD(model.", "SGD(Model().").replace(
        "    for number", "    model = Model()\n    for number"
    )
    made = inserted({"train.py": other}, {"train.py": LOOP})["train.py"].splitlines()
    here = next(n for n, x in enumerate(made) if ".attach(model, optimizer" in x)
    assert made[here - 1].strip() == "model = Model()"


def test_optimizer_without_a_name_is_wrapped() -> None:
    made = "SGD(model.parameters(), lr=0.1)"
    inline = LOOP.replace(f"optimizer = {made}", f"optimizer = dict(a={made})['a']")
    assert ".hold(model, SGD(" in lines(inline)[0]
    assert lines(inline)[1].strip().endswith(".attach_held()")


def test_program_without_an_optimizer_is_not_applicable() -> None:
    with pytest.raises(NotApplicable, match="no optimizer"):
        inserted({"train.py": "print(1)\n"}, {"train.py": LOOP})


@pytest.mark.parametrize("half", ["develop", "report"])
def test_every_plain_program_takes_the_lines(half: str) -> None:
    for program in programs(half):
        if program.framework == "plain" and program.ranks == 1:
            for path, text in inserted(program.files, program.files).items():
                if path.endswith(".py"):
                    compile(text, path, "exec")


def test_program_runs_with_a_peer_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    shutil.copy(cases.INSIDE / "watch.py", inside)
    (inside / "fake_inside.py").write_text(TOLD)
    monkeypatch.setattr(cases, "INSIDE", inside)
    monkeypatch.setattr(cases, "WORK", tmp_path / "work")
    project = tmp_path / "incident" / "project"
    project.mkdir(parents=True)
    (project / "train.py").write_text(LOOP)
    case = Case(incident("lr-zero", project.parent), 0, {"train.py": LOOP})
    ran = run_with("fake", Path(sys.executable), case)
    assert (ran.code, ran.failures) == (0, ())
    assert ran.output.count("step") == 3
    assert ran.alarms[0]["says"] == "Model 0.1, loss 0.0, loss 1.0, loss 2.0"


def test_only_an_alarm_that_is_not_usual_is_a_catch() -> None:
    faulty = incident("lr-too-high")
    caught = judge(faulty, said(RATE), said())
    assert (caught.is_caught, caught.is_named, caught.is_mentioned) == (True, True, True)
    usual = judge(faulty, said(RATE), said(RATE))
    assert (usual.is_caught, usual.is_named) == (False, False)


def test_advice_mentions_and_does_not_name() -> None:
    verdict = judge(incident("lr-too-high"), said(SPIKE), None)
    assert (verdict.is_caught, verdict.is_named, verdict.is_mentioned) == (True, False, True)


def test_alarms_on_healthy_runs_are_false_unless_they_name_a_weak_fault() -> None:
    assert judge(incident(None, injected=None), said(RATE), None).is_false_alarm
    assert not judge(incident(None, injected="lr-too-high"), said(RATE), None).is_false_alarm
    assert judge(incident(None, injected="lr-zero"), said(RATE), None).is_false_alarm
    assert not judge(incident(None, injected=None), said(), None).is_false_alarm


def test_identifiers_count_as_they_are() -> None:
    told = said(Alarm("dead-relu", "dead-relu", causes=("dead-relu",)))
    assert judge(incident("dead-relu"), told, None).is_named
    assert not judge(incident("lr-zero"), told, None).is_named


def test_numbers_do_not_make_another_alarm() -> None:
    assert Alarm("", "loss is 0.31 at step 4").key == Alarm("", "loss is 2e-5 at step 70").key


def test_failed_uses_are_counted_apart() -> None:
    failed = Outcome("peer", "a", Status.FAILED, (), "it raised")
    verdicts = [judge(incident("lr-zero"), failed, None), judge(incident("lr-zero"), said(), None)]
    counts = count(verdicts)
    assert (counts.faulty, counts.failed, counts.reasons) == (1, 1, {"it raised": 1})


def test_every_cause_that_one_process_can_have_has_words() -> None:
    causes = {o.cause for o in all_operators() if o.cause}
    assert causes - set(NAMES) <= ONE_RANK_CAUSES_WITHOUT_WORDS


@pytest.mark.parametrize(
    ("text", "cause", "is_named"),
    [
        ("Found 'loss.backward()' without 'optimizer.zero_grad()'.", "missing-zero-grad", True),
        ("loss is NaN", "lr-too-high", False),
        ("loss is NaN", "nan-in-data", False),
        ("Learning rate likely too low", "lr-too-high", False),
        ("lr=0 on 100% of steps", "lr-zero", True),
        ("The tensor doesn't belong to any optimizer.", "parameters-not-in-optimizer", True),
        ("Vanishing gradients detected.", "vanishing-gradients", True),
        ("Loss plateau: no improvement", "missing-optimizer-step", False),
    ],
)
def test_words_tell_a_cause_from_a_symptom(text: str, cause: str, is_named: bool) -> None:
    assert names(text, [cause]) is is_named


def test_exceptions_belong_to_whoever_raised_them() -> None:
    output = (
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    f()\n'
        '  File "/x/site-packages/torcheck/param_spec.py", line 9, in validate\n    raise X(\n'
        "RuntimeError: The following errors are detected while training:\nweight should change.\n"
    )
    assert raised_in(output, "site-packages/torcheck/").splitlines()[-1] == "weight should change."
    assert raised_in(output, "site-packages/other/") == ""
    assert raised_in("all is well", "torcheck") == ""


def test_sample_is_plain_mixed_and_repeatable(tmp_path: Path) -> None:
    for number, cause in enumerate(["lr-zero", "lr-zero", "dead-relu", None, None]):
        _write(tmp_path, f"spiral_mlp--{number}", cause, "plain")
    _write(tmp_path, "cancer_lightning--0", "lr-zero", "lightning")
    chosen = sample("develop", 4, tmp_path)
    assert [c.incident.name for c in chosen] == [
        c.incident.name for c in sample("develop", 4, tmp_path)
    ]
    assert {c.incident.cause for c in chosen} == {"lr-zero", "dead-relu", None}
    assert sum(c.incident.is_healthy for c in chosen) == 2
    assert all(c.incident.framework == "plain" and c.seed == 2 for c in chosen)


def _write(corpus: Path, name: str, cause: str | None, framework: str) -> None:
    folder = corpus / "develop" / name
    (folder / "artifacts").mkdir(parents=True)
    (folder / "artifacts" / "log.txt").write_text("")
    label = {
        "incident": name, "program": name.partition("--")[0], "framework": framework,
        "ranks": 1, "command": "python train.py", "operator": "some", "cause": cause, "injected": cause,
        "seed": 2,
    }  # fmt: skip
    (folder / "label.json").write_text(json.dumps(label))


def test_results_are_kept_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "CACHE", tmp_path)
    assert "Not measured yet" in str(page.section("develop").parts[0])
    verdict = judge(incident("lr-too-high"), said(RATE), None)
    calm = Verdict(said(), is_healthy=True)
    page.keep("develop", [page.Result("some", "its command", "1.0", "", (verdict, calm))])
    page.keep("develop", [page.Result("other", "", "", "no wheel")], is_part=True)
    assert page.read("develop")[0].verdicts == (verdict, calm)
    table = page.section("develop").parts[2]
    assert isinstance(table, Table)
    assert table.rows[0][3:7] == ("1/1", "1/1", "1/1", "0/1")
    assert "no wheel" in str(page.section("develop").parts[-1])
