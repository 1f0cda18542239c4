from traindx.analysis.errors.device_blame import stray_tensor
from traindx.analysis.errors.device_messages import TWO_DEVICES
from traindx.analysis.errors.messages import findings
from traindx.examples import failed, script
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("device-mismatch",))
def check(run: Run) -> Findings:
    """An operation gets tensors that are on different devices.

    ## What it detects
    "Expected all tensors to be on the same device", "Input type (torch.FloatTensor) and weight type
    (torch.cuda.FloatTensor) should be the same" and their older forms, with the devices and the
    argument that the message names; also a tensor of the meta device, which has no values. With
    the source: a tensor that `forward` makes without `device=`, a `.to(device)` whose result is
    dropped, labels or a model that were never moved.

    ## Why it matters
    The traceback shows where the two tensors meet, not where the stray one was made.

    ## What to do
    Make or move the stray tensor once, at its origin.

    ## When it is wrong
    With `device_map` or pipeline stages tensors are on several devices by design; then the layer's
    hook is missing rather than a move.
    """
    yield from findings(run, TWO_DEVICES, blame=stray_tensor)


_ERROR = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
    "cuda:0 and cpu!"
)
_MODEL = """
class Net(nn.Module):
    def forward(self, x):
        noise = torch.randn(x.shape)
        return self.fc(x + noise)
"""

FIRES = {
    "made in forward": failed(_ERROR, "return self.fc(x + noise)", sources={"model.py": _MODEL}),
    "with the argument": failed(
        _ERROR + " (when checking argument for argument mat1 in method wrapper_CUDA_addmm)"
    ),
    "newer": failed(
        "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, "
        "different from other tensors on cuda:0 (when checking argument in method "
        "wrapper_CUDA_addmm)"
    ),
    "older": failed(
        "RuntimeError: Expected object of device type cuda but got device type cpu for argument #1 "
        "'self' in call to _th_mm"
    ),
    "a recurrent layer": failed(
        "RuntimeError: Input and hidden tensors are not at the same device, found input tensor at "
        "cuda:0 and hidden tensor at cpu"
    ),
    "a sampler under another default device": failed(
        "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'"
    ),
    "made without values": failed(
        "NotImplementedError: Cannot copy out of meta tensor; no data!",
        "out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)",
        sources={"train.py": "import torch\nwith torch.device('meta'):\n    model = Tagger(9)\n"},
    ),
    "a batch left behind": failed(
        "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) "
        "should be the same"
    ),
}

SILENT = {
    "near miss: two types on one device": failed(
        "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) "
        "should be the same"
    ),
    "the same code without an error": script(_MODEL),
}
