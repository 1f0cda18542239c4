"""What is kept of an exception: real failures of real models on the CPU."""

from __future__ import annotations

import json
import sys

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from traindx.capture.recorder.caught import describe  # noqa: E402


def caught(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:
        random = torch.get_rng_state()
        told = describe(type(error), error, error.__traceback__)
        assert torch.equal(random, torch.get_rng_state())
        json.dumps(told)
        return told
    raise AssertionError("nothing was raised")


def tensor(told, name):
    return next(summary for _, summary in told["tensors"] if summary["name"] == name)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout(),
            nn.Flatten(),
            nn.Linear(5, 2),
        )

    def forward(self, image):
        hidden = image * 2
        return self.features(hidden)


def test_shapes_through_the_last_modules():
    net = Net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    told = caught(net, torch.zeros(2, 3, 8, 8))
    assert told["type"] == "RuntimeError"
    assert "cannot be multiplied" in told["message"]
    assert told["modules"][0] == ("", "Net", [[2, 3, 8, 8]])
    assert told["modules"][1] == ("features", "Sequential", [[2, 3, 8, 8]])
    assert told["modules"][2] == ("features.0", "Conv2d", [[2, 3, 8, 8]])
    assert told["modules"][3] == ("features.1", "BatchNorm2d", [[2, 4, 6, 6]])
    assert told["modules"][-1] == ("features.5", "Linear", [[2, 144]])
    after = net.state_dict()
    num = before.pop("features.1.num_batches_tracked")
    assert int(after["features.1.num_batches_tracked"]) == int(num) + 1  # the user's own forward
    assert all(after[name].device.type == "cpu" for name in before)


def test_places_are_the_users_and_the_last_one_of_the_library():
    told = caught(Net(), torch.zeros(2, 3, 8, 8))
    assert [place["function"] for place in told["places"]] == ["caught", "forward", "forward"]
    assert told["places"][1]["code"] == "return self.features(hidden)"
    assert told["places"][-1]["file"].endswith("linear.py")
    assert tensor(told, "hidden")["shape"] == [2, 3, 8, 8]


def test_arguments_of_the_loss_function():
    def step():
        logits = torch.randn(4, 3)
        labels = {"y": torch.tensor([0, 1, 2, 3])}
        return F.cross_entropy(logits, labels["y"])

    told = caught(step)
    assert told["type"] == "IndexError"
    target = tensor(told, "target")
    assert (target["low"], target["high"]) == (0, 3)
    assert tensor(told, "labels['y']")["shape"] == [4]
    assert tensor(told, "input")["shape"] == [4, 3]


def test_arguments_of_an_embedding():
    told = caught(nn.Embedding(5, 2), torch.tensor([7]))
    assert tensor(told, "weight")["shape"] == [5, 2]
    assert tensor(told, "input")["high"] == 7
    assert told["modules"] == [("", "Embedding", [[1]])]


class Trap:
    def __getattr__(self, name):
        raise KeyboardInterrupt(name)

    def __repr__(self):
        raise ValueError

    @property
    def __class__(self):
        raise ZeroDivisionError


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no")


class HostileDict(dict):
    def items(self):
        raise RuntimeError("no")

    def __iter__(self):
        raise RuntimeError("no")


@pytest.mark.filterwarnings("ignore")
def test_hostile_values_do_no_harm():
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    with FakeTensorMode():
        fake = torch.ones(2)

    def call(trap, hostile, kinds):
        raise Mute

    told = caught(
        call,
        Trap(),
        HostileDict(a=torch.ones(1), b=Trap()),
        {
            "meta": torch.empty(3, device="meta"),
            "sparse": torch.eye(3).to_sparse(),
            "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            "quantised": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
            "freed": freed,
            "empty": torch.empty(0),
            "scalar": torch.tensor(2.0),
            "fake": fake,
            "complex": torch.ones(2, dtype=torch.complex64),
            "float8": torch.ones(2).to(torch.float8_e5m2),
            "truth": torch.tensor(True),
        },
    )
    names = [summary["name"] for where, summary in told["tensors"] if where.startswith("call,")]
    assert len(names) == 12
    assert "hostile['a']" in names
    assert tensor(told, "kinds['freed']")["shape"] == [4]
    assert tensor(told, "kinds['scalar']")["high"] == 2


def test_endless_recursion_is_cut():
    def down(value):
        return down(value) + 1

    limit = sys.getrecursionlimit()
    told = caught(down, torch.ones(1))
    assert sys.getrecursionlimit() == limit
    assert told["type"] == "RecursionError"
    assert len(told["places"]) == 50
    assert len(told["tensors"]) == 60


def test_nothing_is_needed():
    assert describe(ValueError, None, None) == {
        "type": "ValueError",
        "message": "",
        "places": [],
        "tensors": [],
        "modules": [],
    }
