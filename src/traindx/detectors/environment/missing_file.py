from traindx.analysis.errors.environment_messages import MISSING_FILE
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Findings:
    """The run asks for a file or folder that is not there.

    ## What it detects
    FileNotFoundError, "Parent directory … does not exist" on saving, and image folders without
    images.

    ## Why it matters
    Paths are relative to where the run was started, not to where the script lies, so a run works on
    one machine and fails on another.

    ## What to do
    Print `pathlib.Path(path).resolve()`; build paths from the config, and make output folders with
    `mkdir(parents=True, exist_ok=True)`.

    ## When it is wrong
    On shared storage a file may have been moved or not have arrived yet.
    """
    yield from findings(run, MISSING_FILE)


FIRES = {
    "data": failed(
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'",
        "df = pd.read_csv('data/train.csv')",
    ),
    "saving": failed("RuntimeError: Parent directory runs/exp1 does not exist."),
}

SILENT = {
    "near miss: no space": failed("OSError: [Errno 28] No space left on device"),
    "another error": failed("KeyError: 'label'"),
}
