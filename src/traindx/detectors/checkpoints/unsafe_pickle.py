from traindx.examples import make_run
from traindx.model.run import Event, file_name
from traindx.registry import Findings, Run, cite_event, detector, finding


@detector(needs=("checkpoint",), suggests=("unsafe-checkpoint",))
def check(run: Run) -> Findings:
    """A checkpoint would run code when it is loaded.

    ## What it detects
    A pickle that names functions with power over the machine (`os.system`, `eval`, `subprocess`).
    Its instructions are read, never followed.

    ## Why it matters
    `torch.load(weights_only=False)` executes them with your rights.

    ## What to do
    Do not load the file. Get the weights as safetensors from a source you trust.

    ## When it is wrong
    An odd but honest object may refer to such a function; the names in the evidence tell. Objects
    of ordinary classes (`argparse.Namespace`, whole modules) are not reported here.
    """
    for event in run.events:
        if event.kind == "unsafe-checkpoint":
            claim = f"Loading the checkpoint {file_name(event.artifact)} would execute code"
            yield finding(claim, "unsafe-checkpoint", cite_event(event))


FIRES = {
    "it calls os.system": make_run(
        events=[Event("unsafe-checkpoint", "it refers to posix.system", "model.pt", "data.pkl")]
    )
}

SILENT = {
    "near miss: a saved Namespace, which is only refused": make_run(
        events=[Event("unloadable-checkpoint", "torch refuses it for argparse.Namespace", "a.pt")]
    ),
    "near miss: a damaged file": make_run(
        events=[Event("corrupt-checkpoint", "it ends early", "a.pt")]
    ),
}
