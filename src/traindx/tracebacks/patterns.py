"""What the lines of a traceback look like. Every pattern takes linear time on any line."""

from __future__ import annotations

import builtins
import re

from traindx.model.run import Frame

HEADING = "Traceback (most recent call last)"
# a copy may have lost the first letter; Sacred leaves out its own frames and says so
OPENING = re.compile(r"raceback \(most recent (?:call last|calls WITHOUT Sacred internals)\)$")
CHAIN = (
    "During handling of the above exception, another exception occurred",
    "The above exception was the direct cause of the following exception",
)

PLAIN_FRAME = re.compile(r'\s*File "([^"]*)", line (\d{1,9})(?:,? in (.+)|,)?\s*$')
# IPython from 8 on; `File ~/x/y.py:12, in f(args)`
PATH_FRAME = re.compile(r"\s{0,8}File ([^\s\"][^:]*(?::[\\/][^:]*)?):(\d{1,9})(?:, in (.+))?\s*$")
CELL_FRAME = re.compile(
    r"\s{0,8}((?:Cell|Input) In ?\[\d{1,9}\])(?:, line (\d{1,9}))?(?:, in (.+))?\s*$"
)
CELL_LINE = re.compile(r"<cell line: (\d{1,9})>")
# IPython before 8; the line number comes with the arrow
NAMED_FRAME = re.compile(r"(<[^<>\s]+>|(?:[~/.\w]|[A-Za-z]:\\)[^\s]*\.pyx?) in (\S[^(]*)(?:\(.*)?$")
# forums turn the arrow into typography
ARROW = re.compile(r"(?:[-–—]{1,8}>|→) ?(\d{1,9})(?: (.*))?$")
RICH_FRAME = re.compile(r"│\s{0,8}(\S[^│]*?):(\d{1,9}) in ([\w.<>]+)\s*│?$")
RICH_ARROW = re.compile(r"│\s{0,8}❱\s{0,8}\d{1,9} (.*)")
CARETS = frozenset("^~ ")

NAMED = re.compile(
    r"([\w.<>]{1,400})(\([\w.]{1,200}\))?(?: \(see above for traceback\))?(?:(:)(?!:)|$)"
)
IPYTHON_HEADING = re.compile(r"([\w.<>]{1,400})\s+Traceback \(most recent call last\)$")

# exceptions whose names do not end like one; those after the bar only with their module
NAMES = frozenset(
    {"KeyboardInterrupt", "SystemExit", "GeneratorExit", "StopIteration", "StopAsyncIteration",
     "ExceptionGroup", "BaseExceptionGroup", "BackendCompilerFailed", "FailOnRecompileLimitHit",
     "GuardOnDataDependentSymNode"}
)  # fmt: skip
DOTTED_NAMES = frozenset({"Unsupported", "Empty", "Full", "TimeoutExpired", "TrialPruned", "error"})
BUILTINS = frozenset(
    n for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException)
)
VALUE = re.compile(r"[-+]?(?:\d|nan\b|inf\b)", re.IGNORECASE)

# lines after which no message goes on
STOP = re.compile(
    r"""(?:
    ```|\"{3}\s*$|\+-|--\ Process\ \d|[╭╰]|[\w.]{1,200}RemoteTraceback:
    |(?:\([\w.-]{1,80}\)\s?)?(?:
        \[?[\w.-]{1,80}@[\w.-]{1,80}[^$\#%]{0,200}[$\#%](?:\s|$)|\$\ |>>>(?:\s|$)
        |PS\ [A-Z]:\\|[A-Z]:\\[^>]{0,200}>|In\ ?\[\d{0,9}\]:)
    |(?:srun|slurmstepd|wandb|make(?:\[\d+\])?|zsh|bash):\ |Process\ finished\ with\ exit
    |Killing\ subprocess
    |Exception\ ignored\ |Call\ stack:|---\ Logging\ error|Stack\ \(most\ recent
    |Fatal\ Python\ error|terminate\ called|libc\+\+abi:
    |(?i:epoch|step|iter|iteration|batch|train|training|val|valid|validation|eval|test)
        \b[^A-Za-z]{0,20}\d
    |[^|]{0,120}\d%\||\{'|={10,}\s*$|-{20,}\s*$|_{3,}\ |\[\d{1,6}\]:\s*$
    )""",
    re.VERBOSE,
)
# non-indented lines that are known to belong to the message above them
PARAGRAPH = re.compile(
    r"""(?:CUDA\ kernel\ errors|For\ debugging\ consider|Compile\ with\ `?TORCH|Device-side\ assert
    |Exception\ raised\ from|frame\ \#\d|C\+\+\ CapturedTraceback|Set\ TORCH|You\ can\ suppress
    |Check\ the\ documentation|Last\ error|nccl|socket\w+:|NET/\w+|Cuda\ failure|Search\ for\ `?cuda
    |HIP\ kernel\ errors|from\ user\ code|Explanation:|Developer\ debug\ context|Hints?:?\ \S
    |Please\ note\ that|If\ reserved\ but|See\ https?://|\#\d{1,4}\ )""",
    re.VERBOSE,
)  # fmt: skip
# what a frame's own code says where the text is cut off after it
RAISED = re.compile(
    r"""(?:(?P<assert>assert\ .{1,300},\s*)|raise\ (?P<type>[\w.]{1,80}(?:Error|Exception))\(\s*)
    (?P<quote>["'])(?P<said>[^"']{1,400})(?P=quote)\s*\)?$""",
    re.VERBOSE,
)
# torch and TensorFlow say these of nothing but a fault; posts quote them without the type
SENTENCES = re.compile(
    r"(?:one of the variables needed for gradient computation has been modified by an inplace "
    r"operation|Expected all tensors to be on the same device, but found at least two devices"
    r"|mat1 and mat2 shapes cannot be multiplied \(|logits and labels must have the same first "
    r"dimension).*"
)
MOST_BEFORE = 60  # characters of a writer's own words in front of such a sentence
MARKED = re.compile(
    r"(?:`|\*\*|：)\s{0,4}((?:\w{1,80}\.){0,8}\w{0,80}(?:Error|Exception): [^`*]{8,2000})"
)
WRAPS = re.compile(r"Caught (\w{1,200}) in ")


DEATHS = {
    "segmentation fault": "SegmentationFault",
    "bus error": "BusError",
    "aborted": "Aborted",
    "abort": "Aborted",
    "illegal instruction": "IllegalInstruction",
    "floating point exception": "FloatingPointException",
    "killed": "Killed",
    "out of memory": "Killed",
}
DEATH = re.compile(
    r"(?:zsh: |srun: error: \S{1,200}: tasks? (?P<task>[\d,-]{1,200}): "
    r"|\S{1,200}: line \d{1,9}: {1,9}\d{1,9} )?"
    r"(?P<what>[A-Za-z]{3,12}(?: [A-Za-z]{2,11}){0,2})"
    r"(?P<rest>: \d{1,3}|\s{0,20}\(core dumped\).*|\s{2,}\S.*|\s*)$"
)


def match_death(text: str) -> tuple[str, int | None] | None:
    """Return the type of a crash that the shell or the launcher reports, and the rank."""
    found = DEATH.match(text.lstrip())
    kind = DEATHS.get(found["what"].lower()) if found is not None else None
    if found is None or kind is None:
        return None
    is_prefixed = found.start("what") > 0
    if not is_prefixed and (found["what"] == found["what"].lower() or found["rest"][:2] == "  "):
        return None  # a shell names its source, or writes the word alone and in capitals
    if not is_prefixed and (text[0] == " " or found["what"].lower() in ("out of memory", "abort")):
        return None
    task = found["task"] or ""
    return kind, int(task) if task.isdecimal() and len(task) < 10 else None


def is_heading(text: str) -> bool:
    """Tell whether a line opens a traceback."""
    return "raceback" in text and OPENING.search(text.rstrip(" :─╮-")) is not None


def is_chain(text: str) -> bool:
    """Tell whether a line links the exception above it with the one below."""
    return text.lstrip().startswith(CHAIN)


def is_marks(text: str) -> bool:
    """Tell whether a line only points into the code line above it."""
    return not set(text) - CARETS


def match_frame(text: str) -> Frame | None:
    """Return the frame that a line names, its line 0 if that comes later."""
    if "File" in text:
        # a paste from a terminal may join a padded code line and the frame after it
        joined = max(0, text.rfind('   File "'))
        found = PLAIN_FRAME.match(text, joined) or PATH_FRAME.match(text)
        if found is not None:
            return Frame(found[1], int(found[2]), _function(found[3]))
    if " In" in text and (found := CELL_FRAME.match(text)) is not None:
        at = found[2] or (m[1] if (m := CELL_LINE.search(found[3] or "")) else "0")
        return Frame(found[1], int(at), _function(found[3]))
    if text.startswith("│") and (found := RICH_FRAME.match(text)) is not None:
        return Frame(found[1], int(found[2]), found[3])
    return None


def match_named_frame(text: str) -> Frame | None:
    """Return the frame of IPython before 8, ``file in f(args)``; an arrow gives its line later."""
    found = NAMED_FRAME.match(text) if " in " in text else None
    return Frame(found[1], 0, _function(found[2])) if found is not None else None


def _function(given: str | None) -> str:
    """Return the name without arguments; a notebook's cell is its module."""
    name = (given or "").strip()
    if name.startswith("<cell line"):
        return "<module>"
    return name.split("(", 1)[0].strip()


def match_exception(text: str) -> tuple[str, str] | None:
    """Return type and message of ``Type: message`` or ``Type``, whatever the type."""
    found = NAMED.match(text)
    if found is None:
        return None
    after = text[found.end() : found.end() + 1]
    if found[3] and after.strip() and found[1] not in BUILTINS:
        return None  # `key:value`; only for a known name is a lost space more likely
    parts = found[1].split(".")
    if not all(part.isidentifier() or part == "<locals>" for part in parts):
        return None
    return found[1] + (found[2] or ""), text[found.end() :].strip()


def last_part(name: str) -> str:
    """Return the class of a dotted type, without what Ray adds in brackets."""
    return name.split("(", 1)[0].rsplit(".", 1)[-1]


def is_exception_name(name: str) -> bool:
    """Tell whether a type is an exception by its name alone."""
    last = last_part(name)
    if last in BUILTINS or last in NAMES:
        return True
    if last in DOTTED_NAMES:
        return "." in name
    # ncclSystemError is NCCL's word for a result, in the middle of a message
    is_class = last[0].isupper() or last[0] == "_"
    return is_class and last.endswith(("Error", "Exception")) and (last != "Error" or "." in name)


def match_quoted(text: str, *, is_quiet: bool) -> tuple[str, str] | None:
    """Return the error that a sentence quotes: in code, in bold, or without its type.

    Where the line is a mere remark of a logger, only what is never said of anything but a fault.
    """
    found = None if is_quiet else MARKED.search(text)
    named = match_bare(found[1].strip()) if found is not None else None
    if named is not None:
        return named
    said = SENTENCES.search(text)
    if said is None or said.start() > MOST_BEFORE or "rror:" in text[: said.start()]:
        return None
    return "RuntimeError", said[0].strip()


def match_raised(code: str) -> tuple[str, str] | None:
    """Return what a statement raises, where it says so in plain words."""
    found = RAISED.search(code)
    if found is None:
        return None
    return found["type"] or "AssertionError", found["said"]


def match_bare(text: str) -> tuple[str, str] | None:
    """Return type and message of an error that stands in a line without a traceback.

    ``MeanSquaredError: 0.12`` is a metric and ``UserWarning: …`` is no error.
    """
    found = match_exception(text)
    if found is None or not is_exception_name(found[0]):
        return None
    name, message = found
    if last_part(name).endswith("Warning"):
        return None
    is_known = name in BUILTINS or name in NAMES or ("." in name and last_part(name)[0].isupper())
    if not is_known and (not message or VALUE.match(message)):
        return None
    return found
