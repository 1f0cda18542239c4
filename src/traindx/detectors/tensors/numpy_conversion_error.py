from traindx.analysis.errors.device_messages import NUMPY
from traindx.analysis.errors.messages import findings
from traindx.analysis.errors.written_calls import unconverted_tensor
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Findings:
    """A tensor with a graph, on a GPU, or of a type numpy lacks is converted to numpy.

    ## What it detects
    "Can't call numpy() on Tensor that requires grad", "can't convert cuda:0 device type tensor to
    numpy", "Got unsupported ScalarType BFloat16" and arrays of objects on the way back.

    ## Why it matters
    Harmless in metrics, for which `detach()` is right; in the path to the loss the same call would
    cut the graph.

    ## What to do
    `tensor.detach().cpu().numpy()` for metrics and plots, with `.float()` for bfloat16.

    ## When it is wrong
    If the value is needed for training, stay in torch.
    """
    yield from findings(run, NUMPY, blame=unconverted_tensor)


_ERROR = (
    "RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
    "instead."
)

FIRES = {
    "with a graph": failed(_ERROR, "plot(out.numpy())", sources={"t.py": "plot(out.numpy())\n"}),
    "on a GPU": failed(
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
        "tensor to host memory first."
    ),
}

SILENT = {
    "near miss: two devices in torch": failed(
        "RuntimeError: Expected all tensors to be on the same device, but found at least two "
        "devices, cuda:0 and cpu!"
    ),
    "another error": failed("KeyError: 'label'"),
}
