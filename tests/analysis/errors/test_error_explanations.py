"""Errors as torch really raises them, and as older versions and GPUs worded them, are explained."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from traindx.analysis.errors.root_failure import root_failure
from traindx.diagnosis.engine import diagnose
from traindx.model.findings import Diagnosis, Hypothesis
from traindx.model.run import Run, Source
from traindx.tracebacks import parse_failures

HEADER = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nimport numpy as np\n"


def explain(text: str, sources: dict[str, str] | None = None) -> Diagnosis:
    given = tuple(Source(p, t) for p, t in (sources or {}).items())
    diagnosis = diagnose(Run(failures=parse_failures(text, "run.log"), sources=given))
    assert not diagnosis.failed, diagnosis.failed
    return diagnosis


def top(diagnosis: Diagnosis) -> Hypothesis:
    assert diagnosis.hypotheses, [f.claim for f in diagnosis.findings]
    return diagnosis.hypotheses[0]


def crash(folder: Path, code: str) -> tuple[str, str]:
    """Run a script that fails; return what it printed and its source."""
    script = folder / "train.py"
    source = HEADER + textwrap.dedent(code)
    script.write_text(source)
    command = [sys.executable, "-W", "ignore", str(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=folder, check=False
    )
    assert done.returncode, f"no error: {done.stdout}"
    return done.stdout + done.stderr, source


def line_of(source: str, code: str) -> int:
    lines = [i for i, text in enumerate(source.split("\n"), 1) if text.strip().startswith(code)]
    assert lines, f"{code!r} is not in the source"
    return lines[0]


def patched(folder: Path, hypothesis: Hypothesis) -> None:
    patch = hypothesis.remedies[0].patch
    assert patch, "no patch"
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "apply"], input=patch, text=True, cwd=folder, check=True)


NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return self.fc(x)
model = Net()
x = torch.randn(8, 4)
"""

# code that fails, the cause, the start of the line at fault
REAL = {
    "in place": (
        "h = torch.sigmoid(model(x))\nh += 1\nh.sum().backward()", "in-place-modification", "h += 1"),
    "in place by index": (
        "h = torch.exp(model(x))\nh[0] = 0\nh.sum().backward()", "in-place-modification", "h[0] = 0"),
    "in place by method": (
        "h = torch.tanh(model(x))\nh.mul_(2)\nh.sum().backward()", "in-place-modification", "h.mul_(2)"),
    "leaf": ("w = torch.ones(3, requires_grad=True)\nw -= 0.1", "in-place-modification", "w -= 0.1"),
    "view of a leaf": ("model.fc.weight[0] = 1.0", "in-place-modification", "model.fc.weight[0]"),
    "backward twice": (
        "loss = model(x).pow(2).sum()\nfor i in range(2):\n    loss.backward()", "graph-freed", "loss = model"),
    "hidden state": (
        "rnn = nn.GRU(4, 4)\nh = torch.zeros(1, 8, 4)\noptimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)\n"
        "for i in range(3):\n    optimizer.zero_grad()\n    out, h = rnn(x[None], h)\n    loss = out.sum()\n"
        "    loss.backward()\n    optimizer.step()", "graph-retained-across-steps", "out, h = rnn"),
    "running sum": (
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ntotal = 0\nfor i in range(3):\n"
        "    optimizer.zero_grad()\n    loss = model(x).pow(2).mean()\n    total += loss\n    total.backward()\n"
        "    optimizer.step()", "graph-retained-across-steps", "total += loss"),
    "new tensor": ("loss = torch.tensor(model(x).mean().item())\nloss.backward()", "detached-loss", "loss ="),
    "detach": ("out = model(x).detach()\nloss = out.mean()\nloss.backward()", "detached-loss", "out ="),
    "argmax": (
        "pred = model(x).argmax(1).float()\nloss = pred.mean()\nloss.backward()", "non-differentiable-operation", "pred ="),
    "no_grad": (
        "with torch.no_grad():\n    loss = model(x).mean()\nloss.backward()", "no-grad-training", "with torch.no_grad"),
    "frozen": (
        "for p in model.parameters():\n    p.requires_grad = False\nloss = model(x).mean()\nloss.backward()",
        "frozen-parameters", "p.requires_grad = False"),
    "not a scalar": (
        "loss = F.mse_loss(model(x), x, reduction='none')\nloss.backward()", "api-misuse", "loss.backward()"),
    "unused": (
        "z = torch.ones(2, requires_grad=True)\ntorch.autograd.grad(model(x).sum(), [z])", "unused-parameters", "torch.autograd.grad"),
    "numpy": ("model(x).numpy()", "api-misuse", "model(x).numpy()"),
    "custom backward": (
        "class Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, k):\n        return x * k\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad\nDouble.apply(model(x), 2).sum().backward()",
        "incorrect-custom-backward", "return grad"),
    "double": ("model(torch.from_numpy(np.zeros((2, 4))))", "dtype-mismatch", "model(torch.from_numpy"),
    "conv of uint8": ("nn.Conv2d(3, 3, 1)(torch.zeros(1, 3, 4, 4, dtype=torch.uint8))", "dtype-mismatch", "nn.Conv2d"),
    "float labels": ("F.cross_entropy(model(x), torch.ones(8))", "dtype-mismatch", "F.cross_entropy"),
    "int labels for bce": (
        "F.binary_cross_entropy_with_logits(model(x)[:, 0], torch.ones(8, dtype=torch.long))", "dtype-mismatch", "F.binary"),
    "float ids": ("nn.Embedding(3, 3)(torch.ones(2))", "dtype-mismatch", "nn.Embedding"),
    "softmax of ints": ("F.log_softmax(torch.tensor([[1, 2]]), -1)", "dtype-mismatch", "F.log_softmax"),
    "embedding": ("emb = nn.Embedding(10, 3)\nemb(torch.tensor([10]))", "index-out-of-range", "emb = nn.Embedding"),
    "index": ("torch.zeros(10)[torch.tensor([10])]", "index-out-of-range", "torch.zeros(10)["),
    "gather": ("torch.zeros(2, 3).gather(1, torch.tensor([[3]]))", "index-out-of-range", "torch.zeros(2"),
    "label": ("num_classes = 4\nF.cross_entropy(model(x), torch.full((8,), 4))", "label-out-of-range", "F.cross"),
    "label -1": ("F.cross_entropy(model(x), torch.full((8,), -1))", "label-out-of-range", "F.cross"),
    "one hot": ("F.one_hot(torch.tensor([5]), 3)", "label-out-of-range", "F.one_hot"),
    "two devices": ("torch.zeros(2) + torch.zeros(2, device='meta')", "device-mismatch", "torch.zeros(2) +"),
    "item of many": ("model(x).item()", "api-misuse", "model(x).item()"),
    "float of many": ("float(model(x))", "api-misuse", "float(model(x))"),
    "a condition": ("if model(x) > 0:\n    pass", "api-misuse", "if model(x)"),
    "a loss class": ("loss = nn.CrossEntropyLoss(model(x), torch.zeros(8))", "api-misuse", "loss = nn.Cross"),
    "shadowed": (
        "loss = nn.MSELoss()\nfor i in range(2):\n    loss = loss(model(x), x)\n    loss.backward()", "name-shadowed", "loss = loss("),
    "too many arguments": ("model(x, x)", "api-misuse", "model(x, x)"),
    "too few arguments": ("model()", "api-misuse", "model()"),
    "a tuple": ("F.relu((x, x))", "api-misuse", "F.relu"),
    "no parameters": (
        "class Bad(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layers = [nn.Linear(4, 4)]\n"
        "torch.optim.Adam(Bad().parameters())", "unregistered-submodules", "self.layers = ["),
    "used-up parameters": (
        "params = model.parameters()\nprint(sum(p.numel() for p in params))\ntorch.optim.Adam(params)", "api-misuse", "params ="),
    "no forward": (
        "class Bad(nn.Module):\n    def foward(self, x):\n        return x\nBad()(x)", "api-misuse", "def foward"),
    "no super": (
        "class Bad(nn.Module):\n    def __init__(self):\n        self.out = nn.Linear(4, 4)\nBad()", "missing-super-init", "self.out"),
    "super after": (
        "class Bad(nn.Module):\n    def __init__(self):\n        self.size = 4\n        self.out = nn.Linear(4, 4)\n"
        "        super().__init__()\nBad()", "missing-super-init", "self.out"),
    "none": ("model.fc.weight.grad.norm()", "api-misuse", "model.fc.weight.grad"),
    "no such key": ("batch = {'x': 1}\nbatch['labels']", "api-misuse", "batch['labels']"),
    "unpacking": ("for a, b in [(1, 2, 3)]:\n    pass", "api-misuse", "for a, b"),
    "list by name": ("[1]['x']", "api-misuse", "[1]['x']"),
    "operands": ("None + 1", "api-misuse", "None + 1"),
    "no file": ("np.load('data/train.npy')", "api-misuse", "np.load"),
    "empty": ("torch.utils.data.DataLoader([], shuffle=True)", "api-misuse", "torch.utils.data"),
    "empty validation": ("val_set = []\nval = torch.utils.data.DataLoader(val_set, shuffle=True)", "empty-validation", "val ="),
    "json": ("import json\njson.dumps({'acc': np.float32(1)})", "api-misuse", "json.dumps"),
    "keys": (
        "state = {f'module.{k}': v for k, v in model.state_dict().items()}\nmodel.load_state_dict(state)",
        "state-dict-key-mismatch", "model.load_state_dict"),
    "shapes": (
        "state = {'fc.weight': torch.zeros(9, 4), 'fc.bias': torch.zeros(9)}\nmodel.load_state_dict(state)",
        "state-dict-shape-mismatch", "model.load_state_dict"),
    "optimizer state": (
        "a = torch.optim.SGD(model.parameters(), lr=1)\nb = torch.optim.SGD([nn.Parameter(x)], lr=1)\nb.load_state_dict(a.state_dict())",
        "state-dict-key-mismatch", "b.load_state_dict"),
    "weights only": ("torch.save(model, 'm.pt')\ntorch.load('m.pt')", "unsafe-checkpoint", "torch.load"),
    "code in a file": (
        "import os\nclass Evil:\n    def __reduce__(self):\n        return os.system, ('true',)\ntorch.save(Evil(), 'm.pt')\ntorch.load('m.pt')",
        "unsafe-checkpoint", "torch.load"),
    "truncated": (
        "torch.save(x, 'm.pt')\nopen('n.pt', 'wb').write(open('m.pt', 'rb').read()[:700])\ntorch.load('n.pt')",
        "corrupt-checkpoint", "torch.load"),
    "lfs pointer": (
        "open('n.pt', 'w').write('version https://git-lfs.github.com/spec/v1')\ntorch.load('n.pt')", "corrupt-checkpoint", "torch.load"),
    "empty file": ("open('n.pt', 'w').close()\ntorch.load('n.pt')", "corrupt-checkpoint", "torch.load"),
    "no process group": ("torch.distributed.all_reduce(x)", "api-misuse", "torch.distributed"),
    "environment": ("import os\nos.environ['LOCAL_RANK']", "rendezvous-failure", "os.environ"),
    "env rendezvous": ("torch.distributed.init_process_group('gloo')", "rendezvous-failure", "torch.distributed"),
    "no cuda": ("y = x.cuda()", "version-mismatch", "y = x.cuda()"),
    "host memory": ("torch.zeros(10**12)", "host-memory-growth", "torch.zeros(10"),
    "absurd size": ("torch.zeros(10**15)", "api-misuse", "torch.zeros(10"),
    "scaler without backward": (
        "scaler = torch.amp.GradScaler('cpu')\nopt = torch.optim.SGD(model.parameters(), lr=1)\nscaler.scale(x.sum())\nscaler.step(opt)",
        "missing-backward", "scaler.step"),
    "half weights": (
        "scaler = torch.amp.GradScaler('cpu')\nmodel.half()\nopt = torch.optim.SGD(model.parameters(), lr=1)\n"
        "scaler.scale(model(x.half()).sum()).backward()\nscaler.unscale_(opt)", "half-precision-weights", "scaler.unscale_"),
    "no module": ("import einops_not_here", "version-mismatch", "import einops"),
    "a lambda for workers": (
        "if __name__ == '__main__':\n    d = torch.utils.data.DataLoader([1, 2], num_workers=1, collate_fn=lambda b: b,\n"
        "        multiprocessing_context='spawn')\n    next(iter(d))", "worker-crash", "if __name__"),
    "in a worker": (
        "class Rows(torch.utils.data.Dataset):\n    def __len__(self):\n        return 4\n    def __getitem__(self, i):\n"
        "        return {'x': 1}['label']\nnext(iter(torch.utils.data.DataLoader(Rows(), num_workers=1)))",
        "api-misuse", "return {'x': 1}"),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_real_error(name: str, tmp_path: Path) -> None:
    code, cause, at = REAL[name]
    text, source = crash(tmp_path, NET + code)
    diagnosis = explain(text, {"train.py": source})
    best = top(diagnosis)
    assert best.cause == cause, [(h.cause, round(h.confidence, 2)) for h in diagnosis.hypotheses]
    assert best.confidence >= 0.7
    if name not in {"double", "a lambda for workers"}:
        assert best.location is not None
        assert best.location.line == line_of(source, at)
    alone = top(explain(text))
    assert alone.cause  # without the source there is still something to say


def test_patches_repair_the_program(tmp_path: Path) -> None:
    repaired = [
        "in place", "in place by method", "leaf", "hidden state", "running sum", "new tensor",
        "detach", "not a scalar", "numpy", "double", "a loss class", "shadowed", "no parameters",
        "no forward", "no super", "super after", "keys",
    ]  # fmt: skip
    for name in repaired:
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        text, source = crash(folder, NET + REAL[name][0])
        best = top(explain(text, {"train.py": source}))
        assert best.cause == REAL[name][1]
        patched(folder, best)
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "train.py"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        old = text.strip().split("\n")[-1]
        assert old not in ended.stderr, f"{name}: {ended.stderr}"
        if name not in {"a loss class", "detach", "new tensor"}:
            assert ended.returncode == 0, f"{name}: {ended.stderr}"


# --- wordings of GPUs, other versions and launchers -----------------------------------------------

LITERAL = {
    "device-mismatch": [
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking argument for argument index in method wrapper_CUDA__index_select)",
        "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors on cuda:0 (when checking argument in method wrapper_CUDA_addmm)",
        "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
        "RuntimeError: Expected object of device type cuda but got device type cpu for argument #1 'self' in call to _th_addmm",
        "RuntimeError: Expected object of backend CUDA but got backend CPU for argument #2 'mat2'",
        "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cpu)",
        "RuntimeError: module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: cpu",
    ],
    "dtype-mismatch": [
        "RuntimeError: expected scalar type Float but found Double",
        "RuntimeError: expected scalar type Long but found Int",
        "RuntimeError: Expected object of scalar type Long but got scalar type Float for argument #2 'target' in call to _thnn_nll_loss_forward",
        "RuntimeError: Found dtype Double but expected Float",
        "RuntimeError: \"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Float'",
        "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        "RuntimeError: Input type (c10::Half) and bias type (float) should be the same",
        "RuntimeError: Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.IntTensor instead (while checking arguments for embedding)",
    ],
    "index-out-of-range": [
        "IndexError: index out of range in self",
        "RuntimeError: index out of range: Tried to access index 30522 out of table with 30521 rows.",
        "../aten/src/ATen/native/cuda/Indexing.cu:1141: indexSelectLargeIndex: block: [12,0,0], thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
    ],
    "label-out-of-range": [
        "IndexError: Target 10 is out of bounds.",
        "../aten/src/ATen/native/cuda/Loss.cu:240: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.",
    ],
    "name-shadowed": ["  File \"train.py\", line 3, in <module>\n    loss = loss(out, y)\nTypeError: 'Tensor' object is not callable"],
    "activation-memory": [
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.71 GiB already allocated; 5.56 MiB free; 9.80 GiB reserved in total by PyTorch)",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 11.06 MiB is free. Including non-PyTorch memory, this process has 23.60 GiB memory in use. Of the allocated memory 22.90 GiB is allocated by PyTorch, and 194.87 MiB is reserved by PyTorch but unallocated.",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 55.57 GiB. GPU 0 has a total capacty of 12.00 GiB of which 9.02 GiB is free. Of the allocated memory 984.52 MiB is allocated by PyTorch, and 463.48 MiB is reserved by PyTorch but unallocated.",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "RuntimeError: MPS backend out of memory (MPS allocated: 17.88 GB, other allocations: 384.00 KB, max allowed: 18.13 GB). Tried to allocate 288.00 MB on private pool.",
    ],
    "memory-fragmentation": [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.25 GiB is free. Including non-PyTorch memory, this process has 77.89 GiB memory in use. Of the allocated memory 60.00 GiB is allocated by PyTorch, and 17.00 GiB is reserved by PyTorch but unallocated.",
    ],
    "device-shared": [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 300.00 MiB is free. Process 123 has 70.00 GiB memory in use. Including non-PyTorch memory, this process has 8.00 GiB memory in use. Of the allocated memory 7.40 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
    ],
    "host-memory-growth": [
        "RuntimeError: [enforce fail at CPUAllocator.cpp:64] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 1073741824 bytes. Error code 12 (Cannot allocate memory)",
        "RuntimeError: [enforce fail at ..\\c10\\core\\impl\\alloc_cpu.cpp:72] data. DefaultCPUAllocator: not enough memory: you tried to allocate 28311552 bytes.",
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Killed. ",
    ],
    "shared-memory-exhausted": [
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
        "RuntimeError: unable to open shared memory object </torch_123_456> in read-write mode",
        "OSError: [Errno 24] Too many open files",
        "RuntimeError: received 0 items of ancdata",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\nRuntimeError: DataLoader worker (pid 1) is killed by signal: Bus error.",
    ],
    "worker-crash": [
        "RuntimeError: DataLoader worker (pid(s) 13, 14) exited unexpectedly",
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Segmentation fault. ",
    ],
    "corrupt-checkpoint": [
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        "RuntimeError: unexpected EOF, expected 3302820 more bytes. The file might be corrupted.",
        "RuntimeError: Invalid magic number; corrupt file?",
    ],
    "disk-full": ["OSError: [Errno 28] No space left on device"],
    "ddp-unused-parameters": [
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were not used in producing loss.\nParameter indices which did not receive grad for rank 0: 6 7\n In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG",
    ],
    "rendezvous-failure": [
        "RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 29500).",
        "RuntimeError: Address already in use",
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError: _",
        "RuntimeError: connect() timed out. Original timeout was 1800000 ms.",
        "torch.distributed.DistNetworkError: The IPv4 network addresses of (node-0, 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
    ],
    "half-precision-weights": ["ValueError: Attempting to unscale FP16 gradients."],
    "version-mismatch": [
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
        "ImportError: /opt/x.so: undefined symbol: _ZN2at4_ops5zeros4callE",
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
        "AttributeError: module 'numpy' has no attribute 'bool'",
        "RuntimeError: operator torchvision::nms does not exist",
    ],
    "graph-breaks": ["torch._dynamo.exc.Unsupported: Data-dependent branching\n  Explanation: Detected data-dependent branching"],
    "killed-by-host": ["Epoch 1\nKilled\n"],
    "graph-freed": ["RuntimeError: Trying to backward through the graph a second time, but the buffers have already been freed. Specify retain_graph=True when calling backward the first time."],
    "in-place-modification": [
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation",
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: [torch.cuda.FloatTensor [512, 10]], which is output 0 of TBackward, is at version 3; expected version 2 instead.",
    ],
    "api-misuse": [
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load with map_location",
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method",
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        "RuntimeError: CUDA error: invalid device ordinal",
        "TypeError: forward() takes 2 positional arguments but 3 were given",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("cause", "text"), [(c, t) for c, texts in LITERAL.items() for t in texts])
def test_wording(cause: str, text: str) -> None:
    best = top(explain(text))
    assert best.cause == cause
    assert best.confidence >= 0.7


def test_every_number_of_the_message_is_used() -> None:
    """The claim says what was asked, what is free, and what is held."""
    claims = " ".join(f.claim for f in top(explain(LITERAL["device-shared"][0])).findings)
    for number in ("512.00 MiB", "300.00 MiB", "79.15 GiB", "7.40 GiB", "100.00 MiB", "70.86 GiB"):
        assert number in claims


def test_the_parameters_that_ddp_misses_are_named() -> None:
    frame = 'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n    out = model(x)\n'
    best = top(explain(frame + LITERAL["ddp-unused-parameters"][0]))
    assert "2 parameters on rank 0: number 6, 7" in best.findings[0].claim


def test_a_mere_assert_leaves_two_causes_open() -> None:
    diagnosis = explain("RuntimeError: CUDA error: device-side assert triggered")
    assert {h.cause for h in diagnosis.hypotheses} == {"index-out-of-range", "label-out-of-range"}
    assert not diagnosis.root_causes
    assert "CUDA_LAUNCH_BLOCKING" in diagnosis.findings[0].claim + diagnosis.findings[-1].claim


# --- the scenarios of the seed --------------------------------------------------------------------

DROPOUT = """
class CustomModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(128, 256)
        self.fc2 = nn.Linear(256, 128)
        self.dropout_rate = 0.5

    def forward(self, x):
        x = self.fc1(x)
        x = torch.relu(x)

        if self.training:
            mask = torch.rand_like(x) > self.dropout_rate
            x *= mask  # keep some
            x /= (1 - self.dropout_rate)

        x = self.fc2(x)
        return x


model = CustomModel()
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    x, target = torch.randn(4, 128), torch.randn(4, 128)
    optimizer.zero_grad()
    output = model(x)
    loss = F.mse_loss(output, target)
    loss.backward()
    optimizer.step()
print("ok", all(p.grad is not None for p in model.parameters()))
"""
SEED_MESSAGE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an "
    "inplace operation: [torch.FloatTensor [256, 128]], which is output 0 of ReluBackward0, is at "
    "version 2; expected version 1 instead."
)


@pytest.mark.parametrize("is_seed", [True, False], ids=["the seed's message", "the real message"])
def test_scenario_5_in_place_dropout(is_seed: bool, tmp_path: Path) -> None:
    text, source = crash(tmp_path, DROPOUT)
    best = top(explain(SEED_MESSAGE if is_seed else text, {"train.py": source}))
    assert best.cause == "in-place-modification"
    assert best.confidence > 0.9
    assert best.location is not None
    assert best.location.line == line_of(source, "x *= mask")
    claim = best.findings[0].claim
    assert "[256, 128]" in claim if is_seed else "[4, 256]" in claim
    patched(tmp_path, best)
    changed = (tmp_path / "train.py").read_text()
    assert "x = x * mask  # keep some\n" in changed
    assert "x = x / (1 - self.dropout_rate)\n" in changed
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "ok True"


CLASSIFIER = """
import torch
from torch import nn

class TextClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.fc = nn.Linear(embed_dim, num_classes)

    def forward(self, x):
        x = self.embedding(x)
        x = x.mean(dim=1)
        return self.fc(x)

model = TextClassifier(vocab_size=10000, embed_dim=128, num_classes=5).cuda()
optimizer = torch.optim.Adam(model.parameters())
criterion = nn.CrossEntropyLoss()
for input_ids, labels in train_loader:
    optimizer.zero_grad()
    loss = criterion(model(input_ids.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
"""


def test_scenario_3_device_side_assert() -> None:
    text = "RuntimeError: CUDA error: device-side assert triggered"
    best = top(explain(text, {"train.py": CLASSIFIER}))
    assert best.cause == "index-out-of-range"
    assert best.confidence >= 0.7
    assert best.location is not None
    assert best.location.line == line_of(CLASSIFIER, "self.embedding = nn.Embedding")
    said = " ".join(f.claim for f in best.findings) + " ".join(e.says for e in best.evidence)
    assert "CUDA_LAUNCH_BLOCKING" in said and "CPU" in said and "10000" in said
    remedy = best.remedies[0]
    assert "assert 0 <=" in remedy.verify and "num_embeddings" in remedy.verify
    assert "clamp" not in f"{remedy.change} {remedy.verify}".lower()


GAN = """
shared, head_a, head_b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt_a = torch.optim.SGD([*shared.parameters(), *head_a.parameters()], lr=0.1)
opt_b = torch.optim.SGD([*shared.parameters(), *head_b.parameters()], lr=0.1)
x = torch.randn(8, 4)
for step in range(2):
    features = torch.relu(shared(x))
    features = shared(features)
    loss_a = head_a(features).pow(2).mean()
    loss_b = head_b(features).pow(2).mean()
    opt_a.zero_grad()
    loss_a.backward(retain_graph=True)
    opt_a.step()
    opt_b.zero_grad()
    loss_b.backward()
    opt_b.step()
"""


def test_an_optimizer_step_between_forward_and_backward(tmp_path: Path) -> None:
    text, source = crash(tmp_path, GAN)
    best = top(explain(text, {"train.py": source}))
    assert best.cause == "in-place-modification"
    assert best.location is not None
    assert best.location.line == line_of(source, "opt_a.step()")


# --- what follows from another failure ------------------------------------------------------------

RANKS = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/w/train.py", line 10, in <module>
[rank1]:     y = batch["label"]
[rank1]: KeyError: 'label'
[rank0]: Traceback (most recent call last):
[rank0]:   File "/w/train.py", line 12, in <module>
[rank0]:     loss.backward()
[rank0]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] Connection closed by peer [127.0.0.1]:1234
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2024-01-01_10:00:00
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 12)
============================================================
"""


def test_the_first_rank_is_explained_and_the_others_are_echoes() -> None:
    diagnosis = explain(RANKS)
    causes = [h.cause for h in diagnosis.root_causes]
    assert causes == ["api-misuse"]
    assert diagnosis.root_causes[0].consequences == ("rank-failed-first",)
    assert "collective-mismatch" not in {h.cause for h in diagnosis.hypotheses}
    root = root_failure(Run(failures=parse_failures(RANKS, "run.log")))
    assert root is not None and root.rank == 1 and root.type == "KeyError"


def test_the_order_of_the_log_does_not_decide_alone() -> None:
    lines = RANKS.split("\n")
    swapped = "\n".join(lines[4:8] + lines[:4] + lines[8:])
    root = root_failure(Run(failures=parse_failures(swapped, "run.log")))
    assert root is not None and root.rank == 1


def test_ranks_in_different_collectives() -> None:
    text = "\n".join(
        f"[rank{rank}]: torch.distributed.DistBackendError: Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={number}, OpType={kind}, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600004 "
        "milliseconds before timing out."
        for rank, number, kind in [(0, 7, "ALLREDUCE"), (1, 8, "BROADCAST")]
    )
    assert top(explain(text)).cause == "collective-mismatch"


def test_a_probe_of_a_library_is_not_the_cause() -> None:
    text = """\
Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1, in __getattr__
    return self._cache[name]
KeyError: 'fast'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/w/train.py", line 12, in <module>
    loss = criterion(out, y)
IndexError: Target 10 is out of bounds.
"""
    assert top(explain(text)).cause == "label-out-of-range"


def test_launched_by_torchrun_and_killed() -> None:
    text = RANKS[RANKS.index('Traceback (most recent call last):\n  File "/usr') :]
    text = text.replace("exitcode  : 1 (pid: 12)", "exitcode  : -9 (pid: 12)")
    assert top(explain(text)).cause == "killed-by-host"


# --- silence --------------------------------------------------------------------------------------

HEALTHY = """\
Epoch 1 | train loss 0.73 | error: 0.31
Epoch 2 | train loss 0.52 | error: 0.20
MeanAbsoluteError: 0.12
UserWarning: index out of range values were dropped by the collate function
Epoch 3 | train loss 0.43 | error: 0.03
2024-01-01 10:00:00 WARNING CUDA out of memory handler installed
ValueError count: 0
device-side assert: none
Epoch 4 | train loss 0.41 | error: 0.03
"""


def test_words_of_errors_in_a_healthy_log_are_no_errors() -> None:
    assert parse_failures(HEALTHY, "run.log") == ()
    assert explain(HEALTHY).hypotheses == ()


def test_a_survived_error_is_not_explained(tmp_path: Path) -> None:
    from traindx import api

    caught = "Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in f\n    g()\nKeyError: 'x'\n"
    rest = "".join(f"epoch {i} loss {1 / i:.4f}\n" for i in range(4, 30))
    log = tmp_path / "train.log"
    log.write_text("epoch 1 loss 1.0\nepoch 2 loss 0.9\n" + caught + rest)
    run = api.open_run(log)
    assert run.failures
    assert root_failure(run) is None


def test_the_same_source_is_understood_before_it_raises() -> None:
    source = HEADER + DROPOUT
    best = top(explain("", {"train.py": source}))
    assert best.cause == "in-place-modification"
    assert best.location is not None
    assert best.location.line == line_of(source, "x *= mask")


def test_a_change_of_what_backward_does_not_need_is_left_alone() -> None:
    source = (HEADER + DROPOUT).replace("x *= mask", "x = x * mask").replace("x /= (", "x = x / (")
    diagnosis = explain("", {"train.py": source})
    assert not [f for f in diagnosis.findings if f.shows == "in-place-modification"]
