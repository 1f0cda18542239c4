"""JSON and JSON Lines: records of metrics, histories of lists, or a configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from traindx.errors import UnreadableArtifact
from traindx.model.merging import resolve
from traindx.model.metric_names import canonical, is_epoch, is_step, phase_of, words
from traindx.model.run import Config, Event, Run, Series, Setting, as_number
from traindx.readers.columns import TAGS, Cells, Columns, certain, to_series
from traindx.readers.formats.settings import TRAINING_KEYS, settings_of
from traindx.readers.formats.structured.record_columns import (
    CONTAINERS,
    MAX_DEPTH,
    MAX_NAMES,
    Record,
    RecordColumns,
    bounded,
    leaves,
)
from traindx.readers.json_text import begins_as_json, load, locate, parse
from traindx.readers.outputs.texts import SURE, Recorded
from traindx.readers.text import LineBlocks, damage, decode, is_text, read_text
from traindx.registry import reader

MAX_BYTES = 64 << 20  # of one document; JSON Lines are streamed
MAX_LOCATED = 16 << 20  # in a longer document, records are counted rather than located by line

_OTHER_TOOLS = frozenset(
    {"package.json", "package-lock.json", "tsconfig.json", "tokenizer.json", "vocab.json",
     "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "diagnosis.json",
     "settings.json", "launch.json", "composer.json"}
)  # fmt: skip
_KEY = re.compile(r'"([^"\\\n]{1,100})"\s*:')
_NAME = re.compile(r'"([\w/ .@-]{1,40})"')
_COUNTED = re.compile(r"(epoch|step|iter|iteration)?[ _-]*(\d+)", re.IGNORECASE)


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file is JSON which tells of a training run."""
    if not head.strip() or not is_text(head):
        return 0.0
    text = decode(head).strip()
    if text[:1] not in {"{", "["} or not (_is_lines(path, text) or begins_as_json(text)):
        return 0.0
    if path.name.lower() in _OTHER_TOOLS or path.suffix == ".ipynb":
        return 0.05
    keys = set(_KEY.findall(text))
    if "log_history" in keys:
        return 0.97
    if {"root_causes", "schema_version"} <= keys:
        return 0.05  # a diagnosis of ours
    is_counted = any(is_step(k) or is_epoch(k) for k in keys)
    if any(phase_of(canonical(k)) for k in certain(keys)):
        return 0.95 if is_counted else 0.85
    is_config = len({k.lower() for k in keys} & TRAINING_KEYS) > 1
    # in a long table, the names of the metrics are values
    is_tagged = bool(keys & {"columns", *TAGS}) and bool(certain(_NAME.findall(text)))
    if is_config or is_tagged:
        return 0.8
    has_outputs = keys & SURE or (keys & {"output", "response"} and _is_about_outputs(path))
    return 0.5 if has_outputs else 0.4 if is_counted else 0.15


def _is_about_outputs(path: Path) -> bool:
    return bool(
        {"sample", "samples", "generated", "generations", "predictions", "outputs", "preds"}
        & set(words(path.stem))
    )


def _is_lines(path: Path, text: str) -> bool:
    """Tell whether every line is a document of its own."""
    lines = [x.strip().rstrip(",") for x in text.split("\n")[:40] if len(x.strip()) > 1]
    whole = sum(line.startswith("{") and isinstance(load(line), dict) for line in lines)
    is_named = path.suffix.lower() in {".jsonl", ".ndjson"}
    return whole >= 0.5 * len(lines) and whole > (0 if is_named else 1)


@reader("json", sniff)
def read(path: Path) -> Run:
    """Read metrics as series and everything else as settings."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if not head.strip():
        raise UnreadableArtifact(str(path), "it is empty", "a file that the run wrote to")
    if not is_text(head):
        raise UnreadableArtifact(str(path), "it is binary", "a JSON file")
    if _is_lines(path, decode(head).strip()):
        return _read_lines(path)
    return _read_document(path)


def _read_lines(path: Path) -> Run:
    records = RecordColumns()
    outputs = Recorded(str(path))
    damaged: list[int] = []
    blocks = LineBlocks(path)
    for first_line, lines in blocks:
        for place, line in enumerate(lines, first_line):
            stripped = line.strip().rstrip(",")
            if stripped in {"", "[", "]", "{", "}"}:
                continue
            # a list with a record on each line is read line by line too
            record = load(stripped.removeprefix("[") if stripped[0] == "[" else stripped)
            if record is None and stripped.endswith("}]"):
                record = load(stripped[:-1])
            if isinstance(record, dict):
                records.add(record, place)
                outputs.add(record, f"line {place}")
            else:
                damaged.append(place)
    warnings = blocks.warnings()
    if damaged:
        warnings.append(f"{len(damaged)} lines are no JSON records, the first is line {damaged[0]}")
    series = to_series(records.columns(), path, "line")
    settings: Sequence[Setting] = ()
    if not series and records.first is not None and not outputs.samples:
        settings = settings_of(records.first, path, "")
    return _run(path, series, settings, records.summaries, warnings, outputs)


def _read_document(path: Path) -> Run:
    text, was_cut = read_text(path, MAX_BYTES)
    warnings = [f"only the first {MAX_BYTES >> 20} MB were read"] if was_cut else []
    document, said = parse(text, path)
    finder = _Finder(path, text)
    rest = None if finder.take_results(document) else finder.take(document, "", 0)
    settings = settings_of(rest, path, text) if isinstance(rest, dict) else []
    if finder.series:  # the state of a Trainer has its progress beside its history
        settings = [s for s in settings if not _is_state(s.key)]
    return _run(path, finder.series, settings, finder.summaries, warnings + said, finder.outputs)


def _is_state(key: str) -> bool:
    is_progress = key in {"epoch", "global_step", "step"}
    return is_progress or key.startswith(("best_", "is_", "stateful_", "total_"))


def _run(
    path: Path,
    series: list[Series],
    settings: Sequence[Setting],
    summaries: Sequence[str],
    warnings: list[str],
    outputs: Recorded,
) -> Run:
    if not series and not settings and not summaries and not outputs.samples:
        warnings.append("it holds neither metrics nor settings")
    artifact, events = damage(path, "json", warnings)
    told = tuple(Event("summary", text, str(path)) for text in summaries)
    return Run(
        name=path.stem,
        series=resolve(series),
        config=Config(tuple(settings)),
        events=events + told,
        artifacts=(artifact,),
        samples=tuple(outputs.samples),
        confusions=outputs.confusions(),
    )


class _Finder:
    """Takes the metrics out of a document, and leaves the rest."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.position = 0
        self.series: list[Series] = []
        self.summaries: list[str] = []
        self.outputs = Recorded(str(path))

    def take_results(self, document: Any) -> bool:
        """Take a document of final values, such as ``all_results.json``, as one record."""
        if not isinstance(document, dict) or not _is_results(document, self.path):
            return False
        self._take_records([document], "", "", is_located=False)
        return True

    def take(self, node: Any, name: str, depth: int) -> Any:
        """Return what is left of a node without its metrics; None if nothing is."""
        prefix = "/".join(x for x in name.split("/") if x.lower() not in CONTAINERS)
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, list):
            for i, record in enumerate(node, 1):
                if isinstance(record, dict):
                    self.outputs.add(record, f"record {i}")
            return None if self._take_list(node, name, prefix) else node
        if not isinstance(node, dict):
            return node
        if depth == 0:
            self.outputs.add(node, "top level")
        node = _from_split(node)
        if isinstance(node, list) or (records := _keyed_by_count(node)) is not None:
            self._take_records(node if isinstance(node, list) else records, "", prefix)
            return None
        rest = self._take_lists(node, prefix)
        left = {}
        for key, value in rest.items():
            below = f"{prefix}/{key}" if prefix else key
            remains = self.take(value, below, depth + 1)
            if remains is not None or value is None:
                left[key] = remains
        return left or None

    def _take_list(self, node: list[Any], name: str, prefix: str) -> bool:
        """Take a list of records, or of ``[step, value]`` and ``[time, step, value]``."""
        if node and all(isinstance(x, dict) for x in node[:100]):
            keys = {k for x in node[:100] if isinstance(x, dict) for k, _ in leaves(x, "", 0)}
            is_counted = any(is_step(k) or is_epoch(k) for k in keys)
            if is_counted or any(phase_of(canonical(k)) for k in certain(keys)):
                self._take_records(node, name.rsplit("/", 1)[-1], prefix)
                return True
            return False
        widths = {len(x) if isinstance(x, list) else 0 for x in node}
        is_plain = widths in ({2}, {3}) and all(_is_number(v) for x in node for v in x)
        if is_plain and (phase_of(canonical(name)) or widths == {3} or not name):
            columns = {"step": [x[-2] for x in node], "value": [x[-1] for x in node]}
            self._take_group(columns, len(node), prefix)
            return True
        if not name and node and all(_is_number(x) for x in node):
            self._take_group({"value": node}, len(node), "")
            return True
        return False

    def _take_records(
        self, nodes: Sequence[Any] | None, key: str, prefix: str, is_located: bool = True
    ) -> None:
        whole = [n for n in nodes or () if isinstance(n, Mapping)]
        located = None
        if is_located and len(self.text) <= MAX_LOCATED and nodes and len(whole) == len(nodes):
            located = locate(self.text, key, len(whole), self.position)
        unit, places = "record", list(range(1, len(whole) + 1))
        if located is not None:
            unit, places, self.position = "line", *located
        records = RecordColumns()
        for record, place in zip(whole, places, strict=True):
            records.add(record, place)
        self.summaries += records.summaries
        self.series += to_series(records.columns(), self.path, unit, prefix)

    def _take_lists(self, node: dict[str, Any], prefix: str) -> dict[str, Any]:
        """Take lists of numbers side by side, as a Keras history has them."""
        lists = {k: n for k, v in node.items() if (n := _number_list(v)) is not None}
        named = [f"{prefix}/{k}" if prefix else k for k in lists]
        measured = [n for n in named if phase_of(canonical(_titled(n, self.path)))]
        is_history = measured and (len(lists) == len(node) or any(len(lists[k]) > 1 for k in lists))
        if not is_history:
            return node
        for count in dict.fromkeys(map(len, lists.values())):
            group = {k: v for k, v in lists.items() if len(v) == count}
            self._take_group(group, count, prefix)
        return {k: v for k, v in node.items() if k not in lists}

    def _take_group(self, group: Mapping[str, list[float]], count: int, prefix: str) -> None:
        rows = np.arange(count, dtype=np.int64)
        cells = []
        for key, values in group.items():
            known = np.array([v is not None for v in values], dtype=bool)
            numbers = np.array([np.nan if v is None else bounded(v) for v in values], float)
            cells.append(Cells(key, rows[known], numbers[known]))
        self.series += to_series(Columns(cells, rows + 1), self.path, "entry", prefix)


def _is_results(document: Record, path: Path) -> bool:
    """Tell whether a document says how a run ended: numbers only, with metrics among them."""
    plain = list(islice(leaves(document, "", 0), MAX_NAMES))
    numbers = [name for name, value in plain if as_number(value) is not None]
    named = set(words(path.stem)) & {"results", "result", "summary", "metrics", "metric", "scores"}
    has_lists = _has_lists(document, 0)
    # a configuration has words in it, results have numbers alone
    is_plain = not has_lists and len(numbers) >= (0.8 if named else 1.0) * len(plain)
    is_config = not named and bool({n.lower() for n in numbers} & TRAINING_KEYS - {"epoch", "loss"})
    measured = [n for n in certain(numbers) if phase_of(canonical(n))]
    return is_plain and bool(measured) and not is_config


def _has_lists(node: Any, depth: int) -> bool:
    """Tell whether a document has lists in it, or mappings from a count, which stand for them."""
    if not isinstance(node, dict) or depth > MAX_DEPTH:
        return isinstance(node, list) and len(node) > 1
    is_counted = bool(node) and all(_COUNTED.fullmatch(key) for key in node)
    return is_counted or any(_has_lists(value, depth + 1) for value in node.values())


def _titled(name: str, path: Path) -> str:
    """``losses.json`` may have the keys "train" and "val"."""
    return name if phase_of(canonical(name)) else f"{path.stem}/{name}"


def _is_number(value: Any) -> bool:
    return value is None or (as_number(bounded(value)) is not None and not isinstance(value, str))


def _number_list(value: Any) -> list[Any] | None:
    """Return a list of numbers; pandas writes it as a mapping from row to number."""
    if isinstance(value, dict) and value and all(k == str(i) for i, k in enumerate(value)):
        value = list(value.values())
    if not isinstance(value, list) or not value:
        return None
    numbers = [as_number(bounded(v)) for v in value]
    is_whole = all(n is not None or v is None for n, v in zip(numbers, value, strict=True))
    return numbers if is_whole and any(n is not None for n in numbers) else None


def _from_split(node: dict[str, Any]) -> dict[str, Any] | list[Any]:
    """Return the records of a pandas table that was written with ``orient="split"``."""
    names, rows = node.get("columns"), node.get("data")
    if not isinstance(names, list) or not isinstance(rows, list):
        return node
    return [dict(zip(names, row, strict=False)) for row in rows if isinstance(row, list)]


def _keyed_by_count(node: dict[str, Any]) -> list[Any] | None:
    """Return the records of ``{"epoch_1": {…}, "epoch_2": {…}}`` with their count in them."""
    matches = [_COUNTED.fullmatch(key) for key in node]
    if not node or None in matches or not all(isinstance(v, dict) for v in node.values()):
        return None
    records = []
    for match, record in zip(matches, node.values(), strict=True):
        if match is None:
            return None
        counted = any(is_step(k) or is_epoch(k) for k in record)
        records.append(record if counted else {match[1] or "epoch": float(match[2]), **record})
    return records
