"""What says that a model decides itself when to halt."""

from traindx.analysis.metrics.halting import cite_halting
from traindx.examples import make_run
from traindx.model.run import Event


def test_settings_source_and_series_speak_of_halting():
    event = Event("warning", "UserWarning: var(): degrees of freedom is <= 0.", "a.log", "line 1")
    assert list(cite_halting(make_run(config={"ponder_cost": 0.01}), event))
    assert list(cite_halting(make_run({"other/halt_steps": [1.0]}), event))
    code = "def loss(steps):\n    return -halting_steps.var()\n"
    assert list(cite_halting(make_run(sources={"m.py": code}), event))
    assert not list(cite_halting(make_run(config={"lr": 0.1}), event))
