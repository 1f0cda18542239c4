"""Settings: where a program writes them down, whether anything reads them, and what is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import mappings
from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Instance,
    Known,
    Part,
    Result,
    Site,
    Table,
    Value,
    constant,
    options_of,
    origins,
)
from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Module, key_of, literal
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.settings import PARSES, destinations

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

OPTION = "add_argument"
BINDS = (ast.Assign, ast.AnnAssign)
# nodes that may write a value down under a name
NAMING: tuple[type[ast.AST], ...] = (ast.Call, ast.Dict, *BINDS)
SAME_SETTINGS = re.compile(r"(?:^|\.)(?:vars|dict|asdict|spread|copy|deepcopy|items|namedtuple)$")
# what is given a whole configuration to show it, and takes nothing from it
SHOWS = re.compile(
    r"(?:^|\.)(?:print|pprint|format|str|repr|dumps?|save|info|debug|log\w*|add_text|add_hparams"
    r"|vars|asdict|update|init|dict|items|sorted|parse_args|write|save_hyperparameters)$"
)
GROUP = re.compile(r"group|^(?:g|pg|p)$|state_dict|last_lr", re.IGNORECASE)
CONFIGURATION = re.compile(
    r"(?:^|\.)(?:args|opts?|options|cfg|conf|config|hparams|params|settings|flags|hp)$",
    re.IGNORECASE,
)
# what gives a changed copy of a configuration, and leaves the one that it is given
COPIES = frozenset(
    {
        "dataclasses.replace",
        "copy.replace",
        "._replace",
        "omegaconf.OmegaConf.merge",
        "attr.evolve",
        "attrs.evolve",
        ".model_copy",
        ".copy_and_resolve_references",
    }
)


@dataclass(frozen=True, eq=False)
class WrittenSetting:
    """A number under a name: an option, an entry, a constant, a field."""

    site: Site
    name: str
    value: float


def settings_of(program: Program, names: tuple[str, ...]) -> list[WrittenSetting]:
    """Return where numbers are written down under one of these names."""
    modules = program.project.training_modules
    return [*(s for m in modules for s in _settings(m, names)), *_options(program, names)]


def _options(program: Program, names: tuple[str, ...]) -> list[WrittenSetting]:
    """Options of the command line whose default is a number that stands elsewhere."""
    found: dict[object, WrittenSetting] = {}
    for story in program.stories:
        for event in story.index.named(f".{OPTION}"):
            default = event.kwargs.get("default")
            number = constant(default)
            if default is None or not default.names or type(number) not in (int, float):
                continue
            for name in destinations(event.args, event.kwargs) & set(names):
                setting = WrittenSetting(event.site, name, float(number))  # type: ignore[arg-type]
                found.setdefault(event.node, setting)
    return list(found.values())


def used_by_optimizers(program: Program, names: tuple[str, ...]) -> list[Value]:
    """Return what optimizers are given by one of these names, each place once."""
    found: dict[object, Value] = {}
    for story in program.stories:
        for event in story.events:
            position = 1 if "lr" in names else None
            if event.result is None or event.result.site is not event.site:
                continue
            given = (event.argument(n, position) for n in names)
            value = next((v for v in given if v is not None), None)
            if value is not None and story.is_kind(event.result, Kind.OPTIMIZER):
                found.setdefault(event.node, value)
    return list(found.values())


def optimizers_without(program: Program, name: str) -> list[Result]:
    """Return the optimizers of torch, where none of them may be given a setting of that name."""
    found: dict[object, Result] = {}
    for story in program.stories:
        for made in story.made(Kind.OPTIMIZER):
            is_torch = isinstance(made, Result) and made.maker.startswith("torch.optim.")
            if not isinstance(made, Result) or not is_torch or "**" in made.kwargs:
                return []
            tables = [v for v in origins(made, 50) if isinstance(v, Table)]
            if name in made.kwargs or any(name in t.fields or not t.is_whole for t in tables):
                return []
            if made.site is not None:
                found.setdefault(made.site.node, made)
    return list(found.values())


def is_written_down(value: Value) -> bool:
    """Tell whether a value is a number of the source, not computed and not from outside."""
    number = constant(value)
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    return is_number and isinstance(value, Known) and not value.operands


RATE_NAMES = frozenset({"lr", "learning_rate", "weight_decay", "momentum"})


def written_defaults(story: Story) -> Iterator[ProgramEvent]:
    """Yield the stores into an optimizer which its groups do not read.

    Into its `defaults`, an attribute of its own, or a group under a name that is not its.
    """
    for event in story.events:
        if event.act is not EventForm.STORE or event.receiver is None:
            continue
        owner = event.receiver
        is_item = event.name == "[]" and len(event.args) > 1
        key = constant(event.args[1]) if is_item else event.name
        is_torch = isinstance(owner, Result) and owner.maker.startswith("torch.optim.")
        if not is_item and is_torch and key in RATE_NAMES and story.is_kind(owner, Kind.OPTIMIZER):
            yield event
        elif is_item and isinstance(owner, Part) and owner.key == "defaults":
            later = (e for e in story.index.on(owner.of) if e.order > event.order)
            is_read = any(e.name == ".add_param_group" for e in later)
            if story.is_kind(owner.of, Kind.OPTIMIZER) and not is_read:
                yield event
        elif is_item and key == "learning_rate" and _is_group(story, owner):
            yield event


def _is_group(story: Story, value: Value) -> bool:
    """Tell whether a value is a group of an optimizer of torch's, which calls its rate `lr`."""
    for found in origins(value, 20):
        if isinstance(found, Part) and found.key == "param_groups":
            is_torch = isinstance(found.of, Result) and found.of.maker.startswith("torch.optim.")
            return is_torch and story.is_kind(found.of, Kind.OPTIMIZER)
    return False


# of Transformers, what a model reads where it is made
AT_MAKING = re.compile(
    r"dropout|_pdrop$|^hidden_(?:size|act)$|^num_(?:hidden_layers|attention_heads)$"
    r"|^intermediate_size$|^n_(?:layer|head|embd)$|^activation_function$"
)


def late_settings(story: Story) -> Iterator[tuple[ProgramEvent, Value]]:
    """Yield the settings that are written after the model which reads them is made, with it."""
    for event in story.index.stores:
        if event.receiver is None or AT_MAKING.search(event.name) is None:
            continue
        models = _made_before(story, event)
        later = (e for e in _transformers(story) if e.order > event.order and not e.is_own)
        is_read = any(_takes(e, event.receiver) for e in later)
        if models and not is_read:
            yield event, models[0]


def _takes(event: ProgramEvent, configuration: Value) -> bool:
    given = (*event.args, *event.kwargs.values())
    return any(v is configuration for value in given for v in origins(value, 20))


def _made_before(story: Story, event: ProgramEvent) -> list[Value]:
    """The models of Transformers that a configuration belongs to, or was given to before."""
    owner = event.receiver
    if isinstance(owner, Part) and owner.key == "config":
        return [m for m in options_of(owner.of) if _is_transformer(m)]
    made = (e for e in _transformers(story) if e.order < event.order)
    return [e.result for e in made if owner is not None and e.result and _takes(e, owner)]


def _transformers(story: Story) -> list[ProgramEvent]:
    """Where models of Transformers are made."""
    return story.recall(_found_transformers)


def _found_transformers(story: Story) -> list[ProgramEvent]:
    return [event for event in story.events if _is_transformer(event.result)]


def _is_transformer(value: Value | None) -> bool:
    if not isinstance(value, Result) or not value.maker.startswith("transformers."):
        return False
    kind = value.maker.removesuffix(".from_pretrained").removesuffix(".from_config")
    return bool(re.search(r"Model|For[A-Z]", kind.rsplit(".", 1)[-1]))


# what a user sets to train, and not what a program works out for itself
CHOSEN = frozenset(
    {"lr", "learning_rate", "batch_size", "epochs", "num_epochs", "weight_decay", "dropout",
     "momentum", "hidden_size", "hidden", "optimizer", "warmup_steps"}
)  # fmt: skip


def overwritten_options(story: Story) -> Iterator[ProgramEvent]:
    """Yield where an option of the command line is replaced by a constant, whatever was given."""
    for event in story.events:
        owner = event.receiver
        is_parsed = isinstance(owner, Result) and owner.maker in PARSES and not owner.args
        is_store = event.act is EventForm.STORE and event.name in CHOSEN and not event.guards
        if not is_parsed or not is_store or not is_written_down(event.args[0]):
            continue
        options = (e for e in story.index.named(f".{OPTION}") if e.order < event.order)
        if any(event.name in destinations(e.args, e.kwargs) for e in options):
            yield event


def discarded_copies(story: Story) -> Iterator[ProgramEvent]:
    """Yield the calls that make a changed copy of a configuration which nothing takes."""
    for event in story.events:
        if event.name in COPIES and not event.is_own and _is_statement(event):
            yield event


def _is_statement(event: ProgramEvent) -> bool:
    statement = event.statement
    return isinstance(statement, ast.Expr) and statement.value is event.node


def _settings(module: Module, names: tuple[str, ...]) -> Iterator[WrittenSetting]:
    nodes = (n for kind in NAMING for n in module.nodes(kind))
    for name, value in (named for node in nodes for named in _named(module, node)):
        number = literal(value) if name.lower() in names else None
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            yield WrittenSetting(Site(module, value), name, float(number))


def _named(module: Module, node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The values that a node writes down under a name."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == OPTION:
        flags = [str(literal(a) or "") for a in node.args]
        long = next((f for f in flags if f.startswith("--")), flags[0] if flags else "")
        given = {k.arg: k.value for k in node.keywords}
        name = str(literal(given.get("dest")) or long.lstrip("-").replace("-", "_"))
        if "default" in given:
            yield name, given["default"]
    elif isinstance(node, ast.Dict) and isinstance(module.parents.get(node), BINDS):
        pairs = zip(node.keys, node.values, strict=True)
        yield from ((str(literal(k)), v) for k, v in pairs if k is not None)
    elif isinstance(node, BINDS) and node.value is not None:
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        is_annotated = isinstance(node, ast.AnnAssign)
        is_field = is_annotated and isinstance(module.parents.get(node), ast.ClassDef)
        name = key_of(target) or ""
        if is_field or name.isupper():
            yield name, node.value


@dataclass(frozen=True, eq=False)
class MissedSetting:
    """A setting that is asked for by one name and written down under another, unread."""

    event: ProgramEvent
    asked: str
    written: str
    value: object
    used: object


def missed_settings(story: Story) -> Iterator[MissedSetting]:
    """Yield where a default is taken since the configuration calls the setting by another name."""
    for event in story.events:
        entries = mappings.entries_of(event.receiver)
        asked = constant(event.args[0]) if event.args else None
        is_asked = event.name in (".get", ".pop") and isinstance(asked, str)
        if entries is None or not entries.is_whole or not is_asked or asked in entries.fields:
            continue
        default = event.args[1] if len(event.args) > 1 else None
        if event.result is not default or not isinstance(default, Known):
            continue
        for name, held in entries.fields.items():
            is_alike = isinstance(name, str) and is_same_setting(str(asked), name)
            if not is_alike or not isinstance(held, Known) or held.value == default.value:
                continue
            setting = WrittenSetting(event.site, name, 0.0)
            if type(held.value) is type(default.value) and not is_read(story.program, setting):
                yield MissedSetting(event, str(asked), name, held.value, default.value)


FILLERS = frozenset({"num", "n", "max", "total", "size", "the", "of", "value", "rate"})
SHORTEST = 3  # letters of an abbreviation that is the beginning of a word


def is_same_setting(name: str, other: str) -> bool:
    """Tell whether two names stand for one setting: `lr` and `learning_rate`."""
    first, second = sorted((_words(name), _words(other)), key=lambda w: len("".join(w)))
    if not first or not second or name == other:
        return False
    joined, whole = "".join(first), "".join(second)
    if joined == whole or (len(second) > 1 and joined == "".join(w[0] for w in second)):
        return True
    is_beginning = len(first) == len(second) == 1 and len(joined) >= SHORTEST
    if is_beginning and whole.startswith(joined):
        return True
    plain = [{w.rstrip("s") for w in words if w not in FILLERS} for words in (first, second)]
    return bool(plain[0]) and plain[0] == plain[1]


def _words(name: str) -> list[str]:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [w.lower() for w in re.split(r"[^A-Za-z0-9]+", parted) if w]


def is_read(program: Program, setting: WrittenSetting) -> bool:
    """Tell whether anything may read a setting by its name, or as part of the whole."""
    project = program.project
    is_named = project.may_mention(setting.name) or any(
        _reads(module, node, setting.name) or _hands_on(project, module, node)
        for module in project.modules
        for node in ast.walk(module.tree)
    )
    calls = (e for s in program.stories for e in s.events if e.act is EventForm.CALL)
    return is_named or any(_takes_configuration(e, setting) for e in calls)


def _takes_configuration(event: ProgramEvent, setting: WrittenSetting) -> bool:
    """Tell whether a call out of sight is given all that is configured."""
    if event.is_own or SHOWS.search(event.name):
        return False
    given = [*event.args, *event.kwargs.values()]
    return any(_holds(value, setting) for value in given)


def _holds(value: Value, setting: WrittenSetting, depth: int = 4) -> bool:
    """Tell whether a value is a configuration that a setting is part of."""
    if isinstance(value, Result) and value.maker in PARSES:
        return True
    if isinstance(value, (Table, Instance)):
        return setting.name in value.fields
    looks_through = isinstance(value, Result) and SAME_SETTINGS.search(value.maker)
    return bool(looks_through and depth) and any(
        _holds(v, setting, depth - 1) for v in value.inputs
    )


def _reads(module: Module, node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Name):  # an option or a field becomes a name only by such means
        is_spread = node.id in ("globals", "locals", "exec")
        return is_spread or (name.isupper() and node.id == name and isinstance(node.ctx, ast.Load))
    if not isinstance(node, ast.Constant) or node.value != name:
        return False
    above = module.parents.get(node)
    if isinstance(above, ast.Subscript):  # the optimizer's own groups hold the rate in use
        return GROUP.search(ast.unparse(above.value).rsplit(".", 1)[-1]) is None
    return not isinstance(above, ast.Dict)


def _hands_on(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a call hands a whole configuration to code that is out of sight."""
    if not isinstance(node, ast.Call):
        return False
    spread = [k.value for k in node.keywords if k.arg is None]
    if any(_is_configuration(n) for value in spread for n in ast.walk(value)):
        return True
    given = [*node.args, *(k.value for k in node.keywords)]
    if not any(_is_configuration(value) for value in given):
        return False
    name = module.qualified(node.func) or getattr(node.func, "attr", None) or ""
    is_own = project.find_function(module, name) or project.find_class(module, name)
    return not (is_own or name.startswith("self.") or SHOWS.search(name))


def _is_configuration(node: ast.AST) -> bool:
    name = key_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    return name is not None and CONFIGURATION.search(name) is not None
