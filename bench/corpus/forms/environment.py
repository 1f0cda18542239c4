"""Other forms of what the machine does to a run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, optimizers
from bench.corpus.operators import environment as first
from bench.corpus.sites import outer_loop
from bench.corpus.source import Source
from bench.corpus.syntax import named
from bench.corpus.writing import Side, Site, Sites, ahead, forms, inline, lines


def _counted(start: str) -> Sites:
    """Return the lines behind backward passes, with a line ahead of all epochs."""

    def sites(source: Source) -> Iterator[Site]:
        for step in loop_steps(source):
            loop = outer_loop(source, step.backward)
            if loop is not None and optimizers(source) and "." not in step.loss:
                along = (source.before(loop, start),)
                yield Site((), step.backward, Side.AFTER, {"loss": step.loss}, along)

    return sites


COUNT = ("steps_done += 1", "if steps_done == 90:")
forms(
    first.killed_under_way,
    _counted("steps_done = 0"),
    known={
        "signal-by-name": lines(*COUNT, "    os.kill(os.getpid(), signal.SIGKILL)"),
        "from-outside": lines(*COUNT, '    subprocess.run(["kill", "-9", str(os.getpid())])'),
    },
    new={
        "raised-by-itself": lines(*COUNT, "    signal.raise_signal(signal.SIGKILL)"),
        "from-a-thread": lines(
            *COUNT,
            "    threading.Timer(0.0, os.kill, (os.getpid(), 9)).start()",
            "    time.sleep(30)",
        ),
    },
)


def _saves(source: Source) -> Iterator[Site]:
    for call in named(source, "save"):
        if len(call.args) == 2 and isinstance(call.args[1], ast.Constant):
            yield Site((call.args[1],))


forms(
    first.checkpoint_to_full_disk,
    _saves,
    known={
        "a-line-ahead": ahead('open("/dev/full", "wb")', name="checkpoint_file"),
        "unbuffered": inline('open("/dev/full", "wb", buffering=0)'),
    },
    new={
        "in-a-function": inline(
            "on_disk(<x>)", "def on_disk(name):", '    return open("/dev/full", "r+b")'
        )
    },
)
forms(
    first.log_to_full_disk,
    _counted('loss_file = "/dev/full"'),
    known={
        "opened-each-time": lines(
            'with open(loss_file, "a") as file:', '    file.write(f"{<loss>.item()}\\n")'
        ),
        "printed": lines('print(<loss>.item(), file=open(loss_file, "w"), flush=True)'),
    },
    new={
        "in-a-function": lines(
            "note(loss_file, <loss>.item())",
            top=(
                "def note(path, value):",
                '    with open(path, "w") as file:',
                "        print(value, file=file)",
            ),
        )
    },
)
