import re

from traindx.analysis.recordings.crashes import cite_modules_and_tensors, failed_layer
from traindx.analysis.recordings.observations import own_place, place_words, processes_of
from traindx.examples import recorded
from traindx.model.recording import Caught, Place, Process, Shape, Summary
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

PRODUCT = re.compile(r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)")
CHANNELS = re.compile(r"to have (\d+) channels, but got (\d+) channels")
DEVICES = re.compile(r"all tensors to be on the same device")
DTYPES = re.compile(
    r"must have the same dtype|expected scalar type|expected m1 and m2 to have the same dtype"
)
SIZES = re.compile(r"The size of tensor a \(\d+\) must match|Sizes of tensors must match")
CAUSES = {
    PRODUCT: "shape-mismatch",
    CHANNELS: "channel-mismatch",
    DEVICES: "device-mismatch",
    DTYPES: "dtype-mismatch",
    SIZES: "shape-mismatch",
}


@detector(needs=("recording",), suggests=tuple(dict.fromkeys(CAUSES.values())))
def check(run: Run) -> Findings:
    """An operation failed on shapes, dtypes or devices that the recorder saw.

    ## What it detects
    An error about sizes, channels, types or devices, together with the modules that were being
    called, the shapes they were given, and the tensors of the user's frames.

    ## Why it matters
    The message names two numbers; the layer that brought the wrong one in is further up. The shapes
    along the way show where they stop being what was meant.

    ## What to do
    Follow the shapes from the first module down, and change the layer after which they are wrong.

    ## When it is wrong
    It says what was there, not what was meant: whether the layer or its input is at fault remains
    to be judged.
    """
    for process in processes_of(run):
        for caught in process.caught:
            found = next((f for p in CAUSES if (f := p.search(caught.message))), None)
            if found is not None and (caught.modules or caught.tensors):
                yield _finding(process, caught, found)
                return


def _finding(process: Process, caught: Caught, found: re.Match[str]) -> Finding:
    cause = CAUSES[found.re]
    place, step = own_place(caught.places), float(caught.step)
    title = failed_layer(caught)
    is_shown = bool(title) and found.re in (PRODUCT, CHANNELS)
    cited = [cite_record(process, caught.line, caught.message.split("\n", 1)[0][:200], step=step)]
    cited += cite_modules_and_tensors(process, caught, step)
    return finding(
        f"{_claim(title, found)}{place_words(place)}",
        cause if is_shown else {cause: Strength.MODERATE},
        *cited,
        onset=step,
        place=place,
    )


def _claim(title: str, found: re.Match[str]) -> str:
    if found.re is PRODUCT:
        layer = title or "A matrix product"
        return f"{_upper(layer)} is built for {found[3]} features and receives {found[2]}"
    if found.re is CHANNELS:
        layer = title or "A convolution"
        return f"{_upper(layer)} is built for {found[1]} channels and receives {found[2]}"
    inside = f" in {title}" if title else ""
    what = {DEVICES: "devices", DTYPES: "dtypes", SIZES: "sizes"}[found.re]
    return f"Tensors with different {what} are combined{inside}"


def _upper(text: str) -> str:
    return f"Layer {text}" if text[0].islower() or not text[0].isalpha() else text


_X = Summary("x", (4, 57600), "float32", "cpu", -1.0, 1.0, 0.0, 0.5)
_CHAIN: tuple[tuple[str, str, tuple[Shape, ...]], ...] = (
    ("", "Net", ((4, 3, 32, 32),)),
    ("fc1", "Linear", ((4, 57600),)),
)


def _run(message: str, modules: tuple[tuple[str, str, tuple[Shape, ...]], ...] = _CHAIN) -> Run:
    places = (Place("model.py", 14, "forward", "return self.fc1(x)"),)
    tensors = (("forward, line 14", _X),)
    caught = Caught(9, "RuntimeError", message, places=places, tensors=tensors, modules=modules)
    return recorded(Process(caught=(caught,)))


FIRES = {
    "a product": _run("mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)"),
    "channels": _run("expected input[4, 1, 28, 28] to have 3 channels, but got 1 channels instead"),
    "types": _run("mat1 and mat2 must have the same dtype, but got Double and Float"),
    "sizes, outside of any module": _run("The size of tensor a (3) must match the size", ()),
}

SILENT = {
    "near miss: another error": _run("index out of range in self"),
    "near miss: nothing was seen": recorded(
        Process(caught=(Caught(9, "RuntimeError", "Sizes of tensors must match"),))
    ),
}
