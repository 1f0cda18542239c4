"""A small part of the corpus, recorded anew: what was found must be found again."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.corpus.operators import all_operators
from bench.corpus.plan import candidates
from bench.corpus.program import Mutant, programs
from bench.corpus.runs import Runner

from traindx import Diagnosis, diagnose, open_run

FAULTY = {
    "spiral_mlp--backward-taken-away": "missing-backward",
    "spiral_mlp--validation-on-another-scale-255": "preprocessing-mismatch",
    "spiral_mlp--activation-changed-in-place": "in-place-modification",
    "spiral_mlp--few-examples-many-times-24": "overfitting",
    "echo_rnn--weights-constant-1": "bad-initialisation",
    "echo_rnn--state-not-detached": "graph-retained-across-steps",
    "echo_rnn--logits-viewed-after-transpose": "non-contiguous-view",
}
HEALTHY = (
    "spiral_mlp--average-of-weights-kept",
    "spiral_mlp--strong-dropout",
    "echo_rnn--embedding-frozen-on-purpose",
    "echo_rnn--slower-and-longer",
)
FOUND = 7  # may rise, may not fall


@pytest.fixture(scope="module")
def diagnoses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Diagnosis]:
    wanted = {name.partition("--")[0] for name in (*FAULTY, *HEALTHY)}
    originals = [p for p in programs("develop") if p.name in wanted]
    mutants: dict[str, Mutant] = {m.name: m for m in candidates(originals, all_operators())}
    place = tmp_path_factory.mktemp("gate")
    runner, made = Runner(place), {}
    for name in (*FAULTY, *HEALTHY):
        folder: Path = place / name
        runner.record(mutants[name].program, 0, folder)
        made[name] = diagnose(open_run(folder))
    runner.close()
    return made


def test_faults_that_were_found_are_found_again(diagnoses: dict[str, Diagnosis]) -> None:
    first = {n: [h.cause for h in diagnoses[n].root_causes][:1] for n in FAULTY}
    assert sum(first[n] == [cause] for n, cause in FAULTY.items()) >= FOUND, first


def test_healthy_runs_raise_no_alarm(diagnoses: dict[str, Diagnosis]) -> None:
    alarms = {n: [h.cause for h in diagnoses[n].root_causes] for n in HEALTHY}
    assert alarms == {n: [] for n in HEALTHY}
