"""Configuration: YAML, TOML, INI and printed arguments, each setting with the line it stands in."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from traindx.errors import UnreadableArtifact
from traindx.model.run import Config, Run, Setting
from traindx.readers.text import damage, decode, is_text, read_text
from traindx.registry import reader

MAX_BYTES = 4 << 20
MAX_SETTINGS = 5000
MAX_DEPTH = 40  # deeper nesting is an attack or an accident, and recursion has an end
MAX_EVENTS = 200_000
MAX_TOML = 1 << 20  # bytes; each two of them may be a table of their own
MAX_LIST = 64  # a longer list is data

TRAINING_KEYS = frozenset(
    {"lr", "learning_rate", "lr0", "max_lr", "min_lr", "base_lr", "batch_size", "batch",
     "train_batch_size", "epochs", "epoch", "num_epochs", "max_epochs", "num_train_epochs",
     "max_steps", "train_steps", "optimizer", "optim", "weight_decay", "momentum", "betas",
     "seed", "dropout", "scheduler", "lr_scheduler", "warmup", "warmup_steps", "warmup_ratio",
     "per_device_train_batch_size", "gradient_accumulation_steps", "grad_clip",
     "max_grad_norm", "gradient_clip_val", "num_workers", "hidden_size", "n_layer",
     "n_layers", "num_layers", "n_embd", "precision", "fp16", "bf16", "amp", "loss", "model",
     "model_name", "dataset", "data", "device", "trainer", "training", "train", "num_classes",
     "imgsz", "block_size", "seq_len", "max_length", "accumulate_grad_batches",
     "label_smoothing", "muon_lr"}
)  # fmt: skip
_TELLING = frozenset(
    {"lr", "learning_rate", "lr0", "max_lr", "batch_size", "epochs", "num_epochs",
     "max_epochs", "num_train_epochs", "weight_decay", "optimizer", "warmup_steps",
     "per_device_train_batch_size"}
)  # fmt: skip
_OTHER_TOOLS = frozenset(
    {"pyproject.toml", "setup.cfg", "tox.ini", "mypy.ini", "pytest.ini", ".pre-commit-config.yaml",
     "docker-compose.yml", "docker-compose.yaml", "mkdocs.yml", "environment.yml",
     "environment.yaml", "poetry.toml", ".readthedocs.yaml", "conda.yaml", "cargo.toml"}
)  # fmt: skip

_CALL = re.compile(r"\s*(?:[A-Z]\w*: *)?([A-Z]\w*)\(\s*\w+\s*=")
_PAIR = re.compile(r"""(?:--?)?["']?([A-Za-z_][\w./-]*)["']?\s*(?::=|[:=]|\.{3,}|\s\|\s)\s*(.*)""")
_SEVERAL = re.compile(r"([A-Za-z_][\w.]*)=(.*?)(?=,?\s+[A-Za-z_][\w.]*=|,?\s*$)")
_ARGUMENT = re.compile(
    r"(?<=[(,\s])([A-Za-z_]\w*)=(.{0,500}?)(?=,\s*[A-Za-z_]\w*=|,?\s*\)?\s*$)", re.DOTALL
)
_DEEP_KEY = re.compile(rf"""(?:[\w"'-]+[ \t]*\.[ \t]*){{{MAX_DEPTH}}}""")
_SECTION = re.compile(r"\s*\[([^\]=:]+)\]\s*")
_WORDS = {"true": True, "false": False, "none": None, "null": None, "yes": True, "no": False}

Found = tuple[str, Any, int]  # a key, its value, and its line


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file configures training."""
    if not head.strip() or not is_text(head):
        return 0.0
    text = decode(head)
    first = text.lstrip()[:1]
    if path.name.lower() in _OTHER_TOOLS:
        return 0.05
    if _CALL.match(text) and not path.name.endswith(".py"):
        return 0.8 if _is_all_call(text) else 0.25
    lines = [line.strip()[:1000] for line in text.split("\n")[:2000]]
    keys = [m[1].lower() for line in lines if (m := _PAIR.fullmatch(line))]
    known = {re.split(r"[./]", k)[-1].replace("-", "_") for k in keys} & TRAINING_KEYS
    is_about_training = bool(known & _TELLING) or len(known) > 1
    if path.suffix.lower() in {".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".hparams"}:
        return 0.8 if is_about_training else 0.2
    if first in {"{", "["} and path.suffix.lower() != ".txt":
        return 0.0
    mostly_pairs = len(keys) >= 3 and len(keys) > 0.6 * sum(map(bool, lines))
    # a log repeats its keys, a configuration has each of them once
    return 0.55 if mostly_pairs and is_about_training and len(set(keys)) > 0.8 * len(keys) else 0.0


def _is_all_call(text: str) -> bool:
    """Tell whether nothing follows the printed arguments; a log often begins with them."""
    depth = 0
    for bracket in re.finditer(r"[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            return not text[bracket.end() :].strip()
    return True


@reader("settings", sniff)
def read(path: Path) -> Run:
    """Read every setting under a dotted key."""
    text, was_cut = read_text(path, MAX_BYTES)
    warnings = [f"only the first {MAX_BYTES >> 20} MB were read"] if was_cut else []
    found, said = read_settings(text, path.suffix.lower())
    warnings += said
    if not found:
        why = said[0] if said else "it holds no settings"
        raise UnreadableArtifact(str(path), why, "a YAML, TOML or INI file")
    artifact, events = damage(path, "settings", warnings)
    config = Config(tuple(Setting(k, v, str(path), f"line {n}") for k, v, n in found))
    return Run(name=path.stem, config=config, artifacts=(artifact,), events=events)


def read_settings(text: str, suffix: str) -> tuple[list[Found], list[str]]:
    """Return the settings in a text and what was wrong with it."""
    parse: Callable[[str], Iterator[Found]]
    if suffix == ".toml":
        parse = _from_toml
    elif suffix in {".ini", ".cfg", ".conf"}:
        parse = _from_lines
    elif _CALL.match(text):
        parse = _from_call
    else:
        parse = _from_yaml if suffix in {".yaml", ".yml"} or _is_yaml(text) else _from_lines
    found: list[Found] = []
    try:
        for item in parse(text):
            found.append(item)
            if len(found) >= MAX_SETTINGS:
                return found, [f"only the first {MAX_SETTINGS} settings were read"]
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        said = str(error).split("\n", 1)[0] or type(error).__name__
        found = list(_from_lines(text))[:MAX_SETTINGS]
        return found, [f"it is damaged and was read line by line: {said}"]
    return found, []


def _is_yaml(text: str) -> bool:
    return (
        "=" not in text.split(":", 1)[0]
        and re.search(r"^\s*[\w\"'-]+:(?: |$)", text, re.M) is not None
    )


def _from_yaml(text: str) -> Iterator[Found]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=loader)):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        # composing recurses in C, without a limit of its own
        if depth > MAX_DEPTH or count > MAX_EVENTS:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep or has no end")
    for document in yaml.compose_all(text, Loader=loader):
        if document is not None:
            yield from _from_node("", document, [MAX_EVENTS])


def _from_node(key: str, node: yaml.Node, budget: list[int]) -> Iterator[Found]:
    """Walk a document; aliases may say the same thing a billion times, so the walk is bounded."""
    budget[0] -= 1
    if budget[0] < 0 or key.count(".") > MAX_DEPTH:
        return
    if isinstance(node, yaml.MappingNode):
        inner = _wandb_value(node)
        if inner is not None:
            yield from _from_node(key, inner, budget)
            return
        for name, value in node.value:
            own = name.value if isinstance(name, yaml.ScalarNode) else "?"
            below = key if own == "<<" else f"{key}.{own}" if key else own
            if below != "_wandb":
                yield from _from_node(below, value, budget)
    elif isinstance(node, yaml.SequenceNode):
        plain = [n for n in node.value if isinstance(n, yaml.ScalarNode)]
        if len(plain) == len(node.value) and len(plain) <= MAX_LIST:
            yield key, [_scalar(n) for n in plain], node.start_mark.line + 1
        else:
            for i, item in enumerate(node.value[:MAX_LIST]):
                yield from _from_node(f"{key}.{i}" if key else str(i), item, budget)
    elif key:
        yield key, _scalar(node), node.start_mark.line + 1


def _wandb_value(node: yaml.MappingNode) -> yaml.Node | None:
    """W&B writes every setting as ``{desc: …, value: …}``."""
    entries = {k.value: v for k, v in node.value if isinstance(k, yaml.ScalarNode)}
    return entries["value"] if set(entries) in ({"desc", "value"}, {"value"}) else None


def _scalar(node: yaml.Node) -> Any:
    """Return a plain value; a tag of any other kind stays text and is never carried out."""
    if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
        return str(node.value)
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError, OverflowError):
        return str(node.value)


def _from_toml(text: str) -> Iterator[Found]:
    if len(text) > MAX_TOML:
        raise ValueError(f"it is larger than {MAX_TOML >> 20} MB")
    if _DEEP_KEY.search(text):  # each part is a table, under the names of all those above it
        raise ValueError(f"it has a key of more than {MAX_DEPTH} parts")
    library = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    yield from with_lines(flatten(library.loads(text)), text)


def flatten(data: Mapping[str, Any], key: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the plain values of a nested mapping under dotted keys."""
    for name, value in data.items():
        own = f"{key}.{name}" if key else str(name)
        if isinstance(value, Mapping):
            if depth < MAX_DEPTH:
                unwrapped = set(value) in ({"desc", "value"}, {"value"})
                yield from flatten({name: value["value"]} if unwrapped else value,
                                   key if unwrapped else own, depth + 1)  # fmt: skip
        elif isinstance(value, list) and any(isinstance(v, (Mapping, list)) for v in value):
            if depth < MAX_DEPTH:
                items = {str(i): v for i, v in enumerate(value[:MAX_LIST])}
                yield from flatten(items, own, depth + 1)
        elif not isinstance(value, list) or len(value) <= MAX_LIST:
            yield own, value


def with_lines(items: Iterator[tuple[str, Any]], text: str) -> Iterator[Found]:
    """Add to each key the line in which it stands; keys come in the order of the text."""
    position = line = 0
    for key, value in items:
        last = re.escape(key.rsplit(".", 1)[-1])
        pattern = re.compile(rf"""(?<![\w.])["']?{last}["']?\s*[:=]""")
        match = pattern.search(text, position) or pattern.search(text)
        if match:
            start = match.start()
            line = text.count("\n", 0, start) if start < position else line + text.count(
                "\n", position, start
            )  # fmt: skip
            position = start
        yield key, value, line + 1


def _from_call(text: str) -> Iterator[Found]:
    """``Namespace(lr=0.1, …)`` and ``TrainingArguments(…)``: parsed, never evaluated."""
    opened = text.index("(")
    lead = text.count("\n", 0, opened)
    try:
        body = ast.parse("f" + text[opened:].strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        # something in it is no Python, such as <HUB_TOKEN>
        for pair in _ARGUMENT.finditer(text, opened):
            yield pair[1], literal(pair[2]), text.count("\n", 0, pair.start(1)) + 1
        return
    for keyword in body.keywords if isinstance(body, ast.Call) else ():
        if keyword.arg:
            yield keyword.arg, literal(ast.unparse(keyword.value)), lead + keyword.value.lineno


def _from_lines(text: str) -> Iterator[Found]:
    section = ""
    for i, line in enumerate(text.split("\n")[: MAX_SETTINGS * 4], 1):
        stripped = line.split(" #", 1)[0].strip()
        if not stripped or stripped.startswith(("#", ";", "//")) or len(stripped) > 5000:
            continue
        if match := _SECTION.fullmatch(stripped):
            section = match[1].strip() + "."
            continue
        if stripped.count("=") > 1 and len(pairs := _SEVERAL.findall(stripped)) > 1:
            yield from ((section + k, literal(v), i) for k, v in pairs)
        elif (pair := _PAIR.fullmatch(stripped)) and (value := pair[2].rstrip(", ")):
            yield section + pair[1], literal(value), i


def literal(text: str) -> Any:
    """Return the plain value that a text spells out, else the text; nothing is evaluated."""
    text = text.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) > 500:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text.strip("\"'")


def settings_of(data: Mapping[str, Any], path: Path, text: str) -> Sequence[Setting]:
    """Return the settings of a mapping that another format was parsed into."""
    found = islice(with_lines(flatten(data), text), MAX_SETTINGS)
    return [Setting(key, value, str(path), f"line {line}") for key, value, line in found]
