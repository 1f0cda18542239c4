"""Programs that a rerun starts, and hosts that it talks to: seen, and kept to the copy."""

from __future__ import annotations

import os
import re
import shlex
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from . import Ward

PLACE, CHANGE, EMPTY = "place", "change", "empty"
_CARRIED = (
    "TRAINDX_RECORDING", "TRAINDX_INTERVENTIONS", "TRAINDX_INTERVENTIONS_HOME",
    "TRAINDX_OVERHEAD", "TMPDIR", "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",
)  # fmt: skip
# how the files are meant that a program is given
_CHANGING = {
    **dict.fromkeys(("rm", "rmdir", "mv", "unlink", "mkdir", "shred"), PLACE),
    **dict.fromkeys(("tee", "truncate", "touch", "chmod", "chown", "sed", "dd"), CHANGE),
}
_COPYING = frozenset({"cp", "mv", "rsync", "install", "ln", "scp"})
_ELSEWHERE = frozenset(
    {"kill", "pkill", "killall", "sbatch", "srun", "scancel", "qsub", "bsub", "kubectl", "docker",
     "podman", "ssh", "reboot", "shutdown", "sudo"}
)  # fmt: skip
_REMOTE = frozenset({"scp", "rsync", "aws", "gsutil", "gcloud", "azcopy", "rclone", "curl", "wget"})
_ENDS = re.compile(r"[;&|()]+|\n")
_LOCAL = re.compile(r"localhost|127\.|::1|0\.0\.0\.0|::ffff:127\.")


def install(ward: Ward) -> None:
    """Watch over the ways to start a program."""
    real_system = os.system

    def system(command: Any) -> int:
        return real_system(_shell(ward, command) if isinstance(command, str) else command)

    os.system = system


def watch(ward: Ward, subprocess: Any) -> None:
    """Lead the files of programs that `subprocess` starts, and pass the guard on."""
    real = subprocess.Popen.__init__

    def start(self: Any, args: Any, *rest: Any, **kwargs: Any) -> None:
        if not ward.is_at_work:
            args = _checked(ward, args)
            if kwargs.get("cwd") is not None:
                kwargs["cwd"] = ward.led(kwargs["cwd"], "read")
            if kwargs.get("env") is not None:
                kwargs["env"] = _passed_on(kwargs["env"])
        real(self, args, *rest, **kwargs)

    subprocess.Popen.__init__ = start


def note_connection(ward: Ward, address: Any) -> None:
    """Tell of a connection to another machine."""
    if isinstance(address, tuple) and len(address) >= 2 and not _LOCAL.match(str(address[0])):
        ward.tell("connected", f"{address[0]} port {address[1]}")


def _passed_on(environ: Any) -> Any:
    """A program with an environment of its own is guarded too."""
    try:
        made = dict(environ)
        own = {name: os.environ[name] for name in _CARRIED if name in os.environ}
        injected = own.pop("PYTHONPATH", "").split(os.pathsep)[0]
        paths = [p for p in made.get("PYTHONPATH", "").split(os.pathsep) if p and p != injected]
        return {**made, **own, "PYTHONPATH": os.pathsep.join([injected, *paths])}
    except (TypeError, ValueError):
        return environ


def _checked(ward: Ward, args: Any) -> Any:
    if isinstance(args, (bytes, os.PathLike)):
        return args
    if isinstance(args, str):
        return _shell(ward, args)
    try:
        words = [os.fsdecode(a) for a in args]
    except TypeError:
        return args
    if os.path.basename(words[0] if words else "") in ("sh", "bash", "zsh") and "-c" in words[:-1]:
        at = words.index("-c") + 1
        return [*words[:at], _shell(ward, words[at]), *words[at + 1 :]]
    return _words(ward, words)


def _shell(ward: Ward, text: str) -> str:
    """Lead the files of each command in a line for a shell, as far as it can be read."""
    for root in ward.roots:
        text = re.sub(rf"(?<![\w./-]){re.escape(root)}(?![\w-])", ward.mirror.base + root, text)
    for part in _ENDS.split(text):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            continue
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words.pop(0)
        for before, after in zip(words, _words(ward, words)):
            if after != before:
                text = text.replace(before, after)
        for match in re.finditer(r"(?<![0-9<&-])>{1,2}\s*([^\s>&|;]+)", part):
            target = match[1].strip("\"'")
            if "$" not in target and target != os.devnull:
                text = text.replace(match[1], shlex.quote(str(ward.led(target, CHANGE))))
    return text


def _words(ward: Ward, words: Sequence[str]) -> list[str]:
    if not words:
        return list(words)
    name = os.path.basename(words[0])
    if name in _ELSEWHERE:
        ward.refuse("starting", name)
    if not re.match(r"python|torchrun|accelerate", name):
        ward.tell("sent or fetched with" if name in _REMOTE else "ran", name)
    made = [words[0]]
    for word in words[1:]:
        made.append(_led(ward, name, word))
    if name in _COPYING and len(made) > 2:
        _lead_copies(ward, name, made)
    return made


def _led(ward: Ward, name: str, word: str) -> str:
    meant = _CHANGING.get(name)
    start, sep, rest = word.partition("=")
    if name == "dd" and sep and start == "of":
        return f"of={ward.led(rest, CHANGE)}"
    is_file = not word.startswith("-") and (os.sep in word or os.path.lexists(word))
    if meant is not None and is_file:
        return str(ward.led(word, meant))
    is_own = any(root in word for root in ward.roots) and not word.startswith(sys.prefix)
    if is_own:
        for root in ward.roots:
            pattern = rf"(?<![\w./-]){re.escape(root)}(?![\w-])"
            word = re.sub(pattern, ward.mirror.base + root, word)
    return word


def _lead_copies(ward: Ward, name: str, made: list[str]) -> None:
    """Make the place ready that files are copied to: a link there would be written through."""
    if name in ("scp", "rsync") and ":" in made[-1]:
        ward.refuse("sending files", made[-1])
    target = made[-1] = str(ward.led(made[-1], CHANGE))
    if os.path.isdir(target):
        for source in made[1:-1]:
            if not source.startswith("-"):
                ward.led(os.path.join(target, os.path.basename(source.rstrip(os.sep))), CHANGE)
