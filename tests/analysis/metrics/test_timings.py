"""The logged times of a step and its parts."""

import re

import pytest

from traindx.analysis.metrics.timings import bare_name, picked_time, usual_time
from traindx.examples import make_run


def test_a_time_is_picked_by_its_name():
    run = make_run({"time/val_data": [0.1] * 20, "time/data_time": [9.0] * 2 + [0.1] * 18})
    found = picked_time(run, re.compile("data"))
    assert found is not None and bare_name(found) == "data_time"
    assert usual_time(found) == pytest.approx(0.1)
    assert picked_time(make_run({"time/data": [0.1] * 3}), re.compile("data")) is None
