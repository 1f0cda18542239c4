"""The gradient of a function that a program defines itself."""

from __future__ import annotations

from pathlib import Path

from changing import change

CUSTOM = """
import json
import torch

class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return -2 * x * grad

class Steps(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.from_numpy(x.detach().numpy().round())

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad

x, y = torch.tensor([3.0], requires_grad=True), torch.tensor([1.4], requires_grad=True)
Wrong.apply(x).backward()
Steps.apply(y).backward()
print(json.dumps({"derived": x.grad.item(), "left": y.grad.item()}))
"""


def test_torch_derives_what_the_forward_pass_allows_and_leaves_the_rest(tmp_path: Path) -> None:
    outcome = change(tmp_path, CUSTOM, [("built-in-gradient", {})])
    assert outcome.code == 0, outcome.errors
    assert outcome.told == {"derived": 6.0, "left": 1.0}
    assert outcome.applied("built-in-gradient") == 1
    assert any("Steps" in note for note in outcome.reports["built-in-gradient"]["notes"])
