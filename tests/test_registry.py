"""What is known of detectors before they are imported."""

from __future__ import annotations

import subprocess
import sys

from traindx.model.run import Run
from traindx.registry import (
    Findings,
    Strength,
    declared_detectors,
    detector,
    detectors,
    finding,
)

LOADED = "sum(n.startswith('traindx.detectors.') for n in sys.modules)"


def test_a_detector_is_declared_as_it_is() -> None:
    declared, imported = declared_detectors().items, detectors().items
    assert [(d.name, d.needs) for d in declared] == [(d.name, d.needs) for d in imported]
    assert [d.load() for d in declared] == list(imported)


def test_a_detector_is_not_imported_to_say_what_it_needs() -> None:
    asks = "from traindx.registry import declared_detectors; declared_detectors()"
    program = f"import sys; {asks}; print({LOADED})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    families = len({d.family for d in detectors().items})
    assert int(done.stdout) <= families


def test_a_rule_of_one_cause_need_not_name_it_again():
    @detector(needs=("source",), suggests=("lr-zero",))
    def check(run: Run) -> Findings:
        yield finding("Shown", "")
        yield finding("Suggested", {"": Strength.WEAK})
        yield finding("Of another", "dead-relu")

    shown, suggests, other = check(Run())
    assert (shown.shows, other.shows) == ("lr-zero", "dead-relu")
    assert suggests.suggests == {"lr-zero": Strength.WEAK}
