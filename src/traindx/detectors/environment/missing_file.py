"""A file that the run wanted was not there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

PATH = re.compile(r"No such file or directory:? ?(?:'([^']+)'|\"([^\"]+)\")?")
FOLDER = re.compile(
    r"Couldn't find any class folder in (\S+)|Found 0 (?:files|images) in (?:subfolders of: )?(\S+)"
    r"|(?:Parent directory|Dataset) (\S+) (?:does not exist|not found)"
)


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Iterator[Finding]:
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
    types = ("FileNotFoundError", "RuntimeError", "OSError", "NotADirectoryError")
    hit = match_root(run, PATH, FOLDER, types=types)
    if hit is None:
        return
    failure, found = hit
    path = next((g for g in found.groups() if g), "")
    is_absolute = path.startswith(("/", "~")) or path[1:3] in (":\\", ":/")
    how = "" if is_absolute or not path else ", looked up from where the run was started"
    claim = f"The file or folder {path} is not there{how}" if path else "A file is not there"
    yield explain(run, failure, claim, suggests={"api-misuse": Strength.STRONG})


FIRES = {
    "data": make_failed_run(
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'",
        "df = pd.read_csv('data/train.csv')",
    ),
    "saving": make_failed_run("RuntimeError: Parent directory runs/exp1 does not exist."),
}

SILENT = {
    "near miss: no space": make_failed_run("OSError: [Errno 28] No space left on device"),
    "another error": make_failed_run("KeyError: 'label'"),
}
