"""How findings become belief."""

from __future__ import annotations

import json
import time

import pytest

from traindx import registry
from traindx.diagnosis import engine, hypotheses, running
from traindx.examples import decay, make_run
from traindx.model.findings import Diagnosis, Evidence, Finding, Severity, Status, Strength
from traindx.model.run import Run

RUN = make_run({"loss/train": decay(50)})
HERE = (Evidence("a fact", "train.log", "line 1"),)


def finding(
    suggests: dict[str, Strength] | None = None,
    *,
    shows: str | None = None,
    against: dict[str, Strength] | None = None,
    is_symptom: bool = True,
    onset: float | None = None,
) -> Finding:
    return Finding(
        claim="Something is seen",
        strength=Strength.STRONG,
        evidence=HERE,
        suggests=suggests or {},
        against=against or {},
        shows=shows,
        is_symptom=is_symptom,
        onset=onset,
        detector="test",
    )


def confidence(findings: list[Finding], cause: str) -> float:
    return {h.cause: h.confidence for h in hypotheses.weigh(findings, RUN)}[cause]


def test_bands() -> None:
    one = finding({"lr-too-high": Strength.MODERATE, "outlier-batch": Strength.WEAK})
    assert confidence([one], "lr-too-high") < 0.70
    strong = finding({"lr-too-high": Strength.STRONG})
    assert 0.70 <= confidence([strong], "lr-too-high") <= 0.90
    both = [strong, strong, strong]
    assert confidence(both, "lr-too-high") <= 0.90, "never shown without direct evidence"
    assert confidence([finding(shows="lr-too-high")], "lr-too-high") > 0.90


def test_rivals_for_one_symptom_share_belief() -> None:
    tie = finding({"nan-in-data": Strength.STRONG, "unstable-operation": Strength.STRONG})
    assert confidence([tie], "nan-in-data") < 0.5


def test_direct_evidence_takes_the_symptom_from_its_rivals() -> None:
    tie = finding({"lr-zero": Strength.STRONG, "lr-too-low": Strength.STRONG})
    proof = finding(shows="lr-zero", is_symptom=False)
    assert confidence([tie, proof], "lr-zero") > 0.9
    assert confidence([tie, proof], "lr-too-low") < 0.1


def test_two_causes_with_direct_evidence_do_not_compete() -> None:
    both = [finding(shows="lr-zero"), finding(shows="overfitting")]
    assert confidence(both, "lr-zero") > 0.9 and confidence(both, "overfitting") > 0.9


def test_evidence_against_lowers_belief() -> None:
    strong = finding({"lr-too-high": Strength.STRONG})
    contrary = finding(against={"lr-too-high": Strength.STRONG}, is_symptom=False)
    assert confidence([strong, contrary], "lr-too-high") < 0.3


def test_a_risk_without_a_symptom_is_a_remark() -> None:
    risk = finding({"lr-too-high": Strength.STRONG}, is_symptom=False)
    assert confidence([risk, risk], "lr-too-high") < 0.70


def test_consequences_fold_into_their_cause() -> None:
    chain = [
        finding(shows="lr-too-high", onset=10),
        finding({"missing-gradient-clipping": Strength.STRONG}, onset=12),
        finding({"unstable-operation": Strength.STRONG}, onset=14),
    ]
    weighed = hypotheses.weigh(chain, RUN)
    folded = hypotheses.fold(weighed)
    assert folded["unstable-operation"] == "lr-too-high"
    assert "lr-too-high" not in folded


def test_what_came_before_is_no_consequence() -> None:
    early = [
        finding(shows="lr-too-high", onset=100),
        finding(shows="unstable-operation", onset=5),
    ]
    assert hypotheses.fold(hypotheses.weigh(early, RUN)) == {}


def test_what_is_shown_is_not_folded_into_what_merely_fits() -> None:
    mixed = [finding({"lr-too-high": Strength.STRONG}), finding(shows="unstable-operation")]
    assert "unstable-operation" not in hypotheses.fold(hypotheses.weigh(mixed, RUN))


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> object:
    """Replace all detectors by the given functions."""

    def replace(**checks: registry.Check) -> None:
        made = (registry.Detector(n, c, ("loss",), ()) for n, c in checks.items())
        items = tuple(registry.Declared(d.name, d.needs, lambda d=d: d) for d in made)  # type: ignore[misc]
        monkeypatch.setattr(running, "declared_detectors", lambda: registry.Discovered(items))

    return replace


def test_a_detector_that_crashes_never_hides_the_others(only: object) -> None:
    def broken(run: Run) -> list[Finding]:
        raise ZeroDivisionError("boom")

    def working(run: Run) -> list[Finding]:
        return [finding(shows="lr-zero")]

    only(broken=broken, working=working)  # type: ignore[operator]
    found = engine.diagnose(RUN)
    assert [h.cause for h in found.root_causes] == ["lr-zero"]
    assert found.failed[0].detector == "broken" and "boom" in found.failed[0].error


def test_time_runs_out(only: object) -> None:
    only(slow=lambda run: [finding(shows="lr-zero")])  # type: ignore[operator]
    found = engine.diagnose(RUN, deadline=time.monotonic() - 1)
    assert not found.findings and "--max-time" in found.skipped[0].how


def test_healthy_says_what_was_checked() -> None:
    found = engine.diagnose(RUN)
    assert found.status is Status.HEALTHY
    assert found.root_causes == () and found.checked
    assert any("grad_norm" in s.needs for s in found.skipped)


def test_nothing_to_judge_is_not_healthy() -> None:
    found = engine.diagnose(make_run())
    assert found.status is Status.INSUFFICIENT
    assert found.questions


def test_json_round_trip() -> None:
    run = make_run({"loss/train": [2.0, 30.0, 600.0, float("nan")]}, config={"lr": 3.0})
    found = engine.diagnose(run)
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert Diagnosis.from_dict(json.loads(text)).to_dict() == found.to_dict()


def test_json_has_the_contracts_keys() -> None:
    data = engine.diagnose(
        make_run({"loss/train": [2.0, 30.0, 600.0]}, config={"muon_lr": "1e-2"})
    ).to_dict()
    assert list(data)[:4] == ["schema_version", "status", "summary", "root_causes"]
    cause = data["root_causes"][0]
    assert set(cause) >= {
        "cause", "issue", "severity", "confidence", "confirmed", "evidence", "against",
        "location", "fix", "remedies", "specialist",
    }  # fmt: skip
    assert set(cause["remedies"][0]) == {
        "change", "expected_effect", "verify", "if_it_fails", "patch",
    }  # fmt: skip
    assert set(cause["evidence"][0]) == {"says", "artifact", "locator", "steps", "values"}
    assert "muon_lr" in cause["fix"] and "0.005" in cause["fix"]


def test_severities_are_ordered() -> None:
    assert Severity.LOW.rank < Severity.CRITICAL.rank
