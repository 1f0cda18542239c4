"""Changes of what a loss is given, and of how it is computed."""

from __future__ import annotations

from pathlib import Path

from changing import change

LOSSES = """
import json
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import cross_entropy
from traindx_interventions import reports

torch.manual_seed(0)
count = reports.of("raw-loss-input")
result = {}

def same(name, given, wanted, scores):
    '''Compare a loss and its gradient with what is wanted; tell how often it was changed.'''
    before = count.applied
    value = given()
    changed = count.applied - before
    gradient, = torch.autograd.grad(value, scores, retain_graph=True)
    right = wanted()
    expected, = torch.autograd.grad(right, scores, retain_graph=True)
    result[name] = [bool(torch.allclose(value, right, atol=1e-5)),
                    bool(torch.allclose(gradient, expected, atol=1e-5)), changed]

z = (torch.randn(16, 5) * 3).requires_grad_()
t = torch.randint(0, 5, (16,))
truth = lambda: torch._C._nn.cross_entropy_loss(z, t).mean()
same("softmax", lambda: F.cross_entropy(F.softmax(z, dim=1), t), truth, z)
same("module", lambda: nn.CrossEntropyLoss()(nn.Softmax(dim=-1)(z), t), truth, z)
same("imported", lambda: cross_entropy(z.softmax(1), t), truth, z)
same("view", lambda: F.cross_entropy(torch.softmax(z.view(4, 4, 5), -1).view(-1, 5), t), truth, z)
same("raw", lambda: F.cross_entropy(z, t), truth, z)
same("log_softmax", lambda: F.cross_entropy(F.log_softmax(z, 1), t), truth, z)
same("nll of log", lambda: F.nll_loss(F.log_softmax(z, 1), t), truth, z)
same("nll of softmax", lambda: F.nll_loss(F.softmax(z, 1), t), truth, z)
same("nll of raw", lambda: nn.NLLLoss()(z, t), truth, z)
big = (torch.randn(16, 5) * 200).requires_grad_()
same("saturated", lambda: F.cross_entropy(F.softmax(big, 1), t),
     lambda: torch._C._nn.cross_entropy_loss(big, t).mean(), big)
image = torch.randn(2, 5, 3, 3, requires_grad=True)
mask = torch.randint(0, 5, (2, 3, 3))
same("image", lambda: F.cross_entropy(image.softmax(1), mask),
     lambda: torch._C._nn.cross_entropy_loss(image, mask).mean(), image)

b = (torch.randn(16, 1) * 2).requires_grad_()
u = torch.randint(0, 2, (16, 1)).float()
true = lambda: torch.binary_cross_entropy_with_logits(b, u).mean()
same("sigmoid", lambda: F.binary_cross_entropy_with_logits(torch.sigmoid(b), u), true, b)
same("squeezed", lambda: nn.BCEWithLogitsLoss()(nn.Sigmoid()(b).squeeze(1), u.squeeze(1)), true, b)
same("scores", lambda: F.binary_cross_entropy_with_logits(b, u), true, b)
same("bce of scores", lambda: F.binary_cross_entropy(b, u), true, b)
same("bce", lambda: F.binary_cross_entropy(torch.sigmoid(b), u), true, b)
small = torch.rand(16, 1, requires_grad=True)
same("small scores", lambda: F.binary_cross_entropy_with_logits(small, u),
     lambda: torch.binary_cross_entropy_with_logits(small, u).mean(), small)

shape = reports.of("target-shape")
p, y = torch.randn(8, 1), torch.randn(8)
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("error")
    result["mse"] = [torch.equal(F.mse_loss(p, y), (p[:, 0] - y).square().mean()), True, shape.applied]
    F.l1_loss(p[:, 0], y[:, None]); nn.HuberLoss()(p, y)
result["shapes"] = [True, True, shape.applied]
F.mse_loss(p, p.clone())
F.mse_loss(torch.randn(3, 3), torch.randn(3, 3))
F.cross_entropy(z, t[:, None])
result["labels"] = [True, True, shape.applied]
try:
    F.mse_loss(torch.randn(3), torch.randn(4))
except RuntimeError as error:
    result["error"] = [True, "must match" in str(error), 0]
try:
    F.mse_loss(torch.randn(3))
except TypeError as error:
    result["call"] = [True, "target" in str(error), 0]
print(json.dumps(result))
"""


def test_losses_get_what_they_expect(tmp_path: Path) -> None:
    outcome = change(tmp_path, LOSSES, [("raw-loss-input", {}), ("target-shape", {})])
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    changed = {
        "softmax", "module", "imported", "view", "nll of softmax", "nll of raw", "saturated", "image",
        "sigmoid", "squeezed", "bce of scores",
    }  # fmt: skip
    shapes = {"mse": 1, "shapes": 3, "labels": 4}
    wanted = {n: [True, True, shapes.get(n, int(n in changed))] for n in told}
    assert told == wanted
    assert outcome.applied("raw-loss-input") == len(changed)


PRECISION = """
import json, warnings
import torch
from torch import nn

warnings.simplefilter("ignore")
model = nn.Linear(4, 4)
with torch.autocast("cpu", dtype=torch.bfloat16):
    one = str(model(torch.randn(2, 4)).dtype)
with torch.amp.autocast("cpu", enabled=False):
    pass
scaler = torch.amp.GradScaler("cpu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler.scale(model(torch.randn(2, 4)).sum()).backward()
scaler.step(optimizer)
scaler.update()
scaler.load_state_dict(scaler.state_dict())

compiled = torch.compile(model)
compiled(torch.randn(2, 4))

@torch.compile(mode="max-autotune")
def double(x):
    return x * 2

double(torch.ones(1))
model.compile()
print(json.dumps({"dtype": one, "scale": scaler.get_scale(), "is_same": compiled is model,
                  "unwraps": compiled._orig_mod is model,
                  "keys": list(compiled.state_dict()),
                  "fixed": torch.are_deterministic_algorithms_enabled()}))
"""


def test_precision_compilation_and_determinism(tmp_path: Path) -> None:
    asked = [("full-precision", {}), ("no-compile", {}), ("deterministic", {})]
    outcome = change(tmp_path, PRECISION, asked)
    assert outcome.code == 0, outcome.errors
    assert outcome.told == {
        "dtype": "torch.float32",
        "scale": 1.0,
        "is_same": True,
        "unwraps": True,
        "keys": ["weight", "bias"],
        "fixed": True,
    }
    assert outcome.applied("full-precision") == 2
    assert outcome.applied("no-compile") == 3
    assert outcome.applied("deterministic") == 1
