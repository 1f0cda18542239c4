"""The reader of W&B offline runs."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from traindx.errors import UnreadableArtifact
from traindx.model.merging import resolve
from traindx.model.run import Artifact, Config, Event, Run, Setting, TextSample
from traindx.readers.columns import to_series
from traindx.readers.formats.settings import MAX_SETTINGS, flatten
from traindx.readers.formats.wandb import run_messages
from traindx.readers.formats.wandb.history import UNIT, History
from traindx.readers.formats.wandb.leveldb import HEADER, MAGIC, NUMBER, Framing
from traindx.readers.outputs.texts import MAX_SAMPLES, is_output, texts_in
from traindx.readers.spooled import Spool
from traindx.registry import reader

_ABORTED = 255  # what W&B records for an uncaught exception or an interruption


def sniff(path: Path, head: bytes) -> float:
    """Recognise the file by its first six bytes."""
    return 1.0 if head.startswith(MAGIC + NUMBER) else 0.0


@reader("wandb", sniff)
def read(path: Path) -> Run:
    """Read history, config, console output and the end of a run."""
    with path.open("rb") as file:
        if not sniff(path, file.read(HEADER)):
            raise UnreadableArtifact(str(path), "it is no W&B run", "a file run-*.wandb")
    framing = Framing(path)
    with Spool() as spool:
        told = _Told(path, spool)
        for number, record in enumerate(framing, 1):
            told.add(record, number)
        printed = spool.read(path, "console line", lambda line: f"console line {line}")
        is_full = spool.is_full
    warnings = [*framing.warnings(), *told.warnings()]
    if is_full:
        warnings.append("the end of its console output was left out")
    events = tuple(Event("warning", text, str(path)) for text in warnings)
    metrics = to_series(told.history.columns(), path, UNIT)
    return replace(
        printed,
        name=told.name or path.stem,
        series=resolve([*metrics, *printed.series.values()]),
        config=Config((*told.settings(), *printed.config.settings)),
        events=(*events, *printed.events, *told.events, *told.ending()),
        samples=(*told.samples, *printed.samples),
        artifacts=(Artifact(str(path), "wandb", tuple(warnings)),),
    )


class _Told:
    """What the records of a run tell, gathered one by one."""

    def __init__(self, path: Path, spool: Spool) -> None:
        self.path = path
        self.spool = spool
        self.history = History()
        self.config: dict[tuple[str, ...], tuple[Any, int]] = {}
        self.events: list[Event] = []
        self.samples: list[TextSample] = []
        self.name = ""
        self.exit_code: int | None = None
        self.strange = 0

    def add(self, record: bytes, number: int) -> None:
        """Add a record; one that cannot be parsed is counted."""
        try:
            for kind, value in run_messages.fields(record):
                if isinstance(value, bytes):
                    self._add(kind, value, number)
        except run_messages.DamagedMessage:
            self.strange += 1

    def _add(self, kind: int, data: bytes, number: int) -> None:
        if kind == run_messages.HISTORY:
            self._add_history(data)
        elif kind == run_messages.OUTPUT:
            self.spool.write(run_messages.text_of(data, 3))
        elif kind == run_messages.CONFIG:
            self._configure(data, number)
        elif kind == run_messages.RUN:
            self._begin(data, number)
        elif kind == run_messages.EXIT:
            self.exit_code = run_messages.integer(data, 1) or 0
        elif kind == run_messages.PREEMPTING:
            self._note("killed", "the run was told that it will be preempted", number)
        elif kind == run_messages.ALERT:
            said = f"{run_messages.text_of(data, 1)}: {run_messages.text_of(data, 2)}"
            self._note("warning", said[:300], number)

    def _note(self, kind: str, text: str, number: int) -> None:
        if len(self.events) < MAX_SETTINGS:
            self.events.append(Event(kind, text, str(self.path), f"record {number}"))

    def _begin(self, data: bytes, number: int) -> None:
        self.name = run_messages.text_of(data, 8) or run_messages.text_of(data, 1)
        for config in run_messages.inner(data, 4):
            self._configure(config, number)
        if run_messages.integer(data, 18):
            at = run_messages.integer(data, 14)
            self._note("resume", "the run was resumed" + (f" at step {at}" if at else ""), number)

    def _configure(self, data: bytes, number: int) -> None:
        for item in run_messages.items_of(data):
            is_own = item.path[:1] == ("_wandb",)
            if item.path and not is_own and len(self.config) < MAX_SETTINGS:
                self.config[item.path] = (item.value, number)

    def _add_history(self, data: bytes) -> None:
        texts = self.history.add(data)
        for name, value in texts:
            if is_output(name):
                step, row = self.history.step, self.history.count
                self.samples += [
                    TextSample(text, str(self.path), f"{UNIT} {row}, {name}", step)
                    for text in texts_in(value)
                ][: MAX_SAMPLES - len(self.samples)]

    def settings(self) -> list[Setting]:
        found = []
        for path, (value, number) in self.config.items():
            for key, plain in flatten({".".join(path): value}):
                found.append(Setting(key, plain, str(self.path), f"record {number}"))
        return found[:MAX_SETTINGS]

    def ending(self) -> list[Event]:
        """Say how the run ended, where it did not end well."""
        code = self.exit_code
        if code == 0:
            return []
        if code is None:
            text = "no end was recorded: the run was killed, or still runs"
            return [Event("exit", text, str(self.path))]
        number = -code if code < 0 else code - 128
        if code != _ABORTED and number in set(signal.Signals):
            text = f"the run was ended by {signal.Signals(number).name} (exit code {code})"
            return [Event("killed", text, str(self.path), "exit record")]
        return [Event("exit", f"the run ended with exit code {code}", str(self.path))]

    def warnings(self) -> list[str]:
        said = self.history.warnings()
        if self.strange:
            said.append(f"{self.strange} records could not be parsed")
        return said
