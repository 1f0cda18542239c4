"""What is known of detectors before they are imported."""

from __future__ import annotations

import subprocess
import sys

from traindx.registry import declared_detectors, detectors

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
