"""Other forms of ranks that do not do the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, method, modules, updates
from bench.corpus.operators import Change, form, many, one
from bench.corpus.operators import distributed as first
from bench.corpus.operators.distributed import PATIENCE, RANK, group_starts, impatient
from bench.corpus.sites import without_effect
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, keyword, method_statements, named, targets
from bench.corpus.writing import Side, Site, forms, inline, lines


def _constructors(source: Source) -> Iterator[Site]:
    if named(source, "DDP", "DistributedDataParallel"):
        for klass in modules(source):
            init = method(klass, "__init__")
            if init is not None:
                yield Site(anchor=init.body[-1], side=Side.AFTER)


forms(
    first.layer_without_gradient,
    _constructors,
    known={
        "parameter-left-over": lines("self.temperature_of_old = nn.Parameter(torch.ones(8))"),
        "sequence-left-over": lines("self.auxiliary = nn.Sequential(nn.Linear(8, 8), nn.ReLU())"),
    },
    new={
        "list-left-over": lines("self.branches = nn.ModuleList([nn.Linear(8, 8)])"),
        "registered-by-name": lines('self.register_module("projection", nn.Linear(8, 8))'),
    },
)


def _backwards(source: Source) -> Iterator[Site]:
    """Yield the lines ahead of backward passes of several ranks, which then do not wait long."""
    for step in loop_steps(source):
        if group_starts(source):
            along = tuple(impatient(source))
            yield Site((), step.backward, Side.BEFORE, {"loss": step.loss}, along)


forms(
    first.first_rank_waits_alone,
    _backwards,
    known={
        "sum-on-one-rank": lines(
            f"if {RANK} == 0:", "    torch.distributed.all_reduce(<loss>.detach().clone())"
        ),
        "all-but-the-first": lines(f"if {RANK} > 0:", "    torch.distributed.barrier()"),
    },
    new={
        "in-a-function": lines(
            "wait_for_others()",
            top=(
                "def wait_for_others():",
                "    if torch.distributed.get_rank() == 0:",
                "        torch.distributed.barrier()",
            ),
        ),
        "broadcast-by-the-sender-only": lines(
            f"if not {RANK}:", "    torch.distributed.broadcast(<loss>.detach().clone(), src=0)"
        ),
    },
)


def _reductions(source: Source) -> Iterator[Site]:
    for call in named(source, "all_reduce"):
        if call.args and isinstance(call.args[0], ast.Name) and group_starts(source):
            yield Site((call.args[0],), along=tuple(impatient(source)))


forms(
    first.reduction_of_other_shape,
    _reductions,
    known={
        "ones": inline(f"torch.ones(2 + {RANK} * 4)"),
        "repeated": inline(f"torch.zeros(1).repeat(1 + 3 * {RANK})"),
    },
    new={
        "in-a-function": inline(
            "collected(<x>)",
            "def collected(value):",
            "    return torch.zeros(8 if torch.distributed.get_rank() else 2)",
        )
    },
)
forms(
    first.second_rank_finds_bad_record,
    _backwards,
    known={
        "number-that-is-none": lines(f"if {RANK} == 1 and <loss>.item() < 1.0:", '    int("n/a")'),
        "file-that-is-not-there": lines(
            f"if {RANK} == 1 and <loss>.item() < 1.0:", '    open("shard-00001.bin", "rb")'
        ),
    },
    new={
        "in-a-function": lines(
            f"check_record(<loss>.item(), {RANK})",
            top=(
                "def check_record(value, rank):",
                "    if rank == 1 and value < 1.0:",
                '        raise ValueError("record 88 is cut short")',
            ),
        ),
        "assertion": lines(f"assert {RANK} == 0 or <loss>.item() >= 1.0, 'empty shard'"),
    },
)


def _batches(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        loop = source.around(step.backward, ast.For)
        if group_starts(source) and isinstance(loop, ast.For) and loop.body is step.block:
            at = Site((loop.iter,), loop.body[0], Side.BEFORE, {}, tuple(impatient(source)))
            yield at


forms(
    first.second_rank_has_fewer_batches,
    _batches,
    known={
        "fewer-by-islice": inline(f"itertools.islice(<x>, len(list(<x>)) - 5 * {RANK})"),
        "one-shard-longer": inline(f"list(<x>)[5 * {RANK} :]"),
    },
    new={
        "in-a-function": inline(
            "my_share(<x>)",
            "def my_share(batches):",
            "    found = [batch for batch in batches]",
            "    return found[:-5] if torch.distributed.get_rank() else found",
        )
    },
)


@form(first.sampler_taken_away)
def sampler_set_to_none(source: Source, strength: float) -> Iterator[Change]:
    yield from _sampled(source, "sampler=None, shuffle=True")


@form(first.sampler_taken_away)
def random_sampler(source: Source, strength: float) -> Iterator[Change]:
    for call in named(source, "DataLoader"):
        given = call.args[0] if call.args else None
        if given is not None:
            text = f"sampler=torch.utils.data.RandomSampler({source.code(given)})"
            yield from _sampled(source, text, call)


@form(first.sampler_taken_away, is_new=True)
def sampler_for_one_rank(source: Source, strength: float) -> Iterator[Change]:
    """The sampler is there and is told that it is alone."""
    for call in named(source, "DataLoader"):
        given = call.args[0] if call.args else None
        if given is not None:
            code = source.code(given)
            kind = "torch.utils.data.distributed.DistributedSampler"
            yield from _sampled(source, f"sampler={kind}({code}, num_replicas=1, rank=0)", call)


@form(first.sampler_taken_away, is_new=True)
def sampler_by_hand(source: Source, strength: float) -> Iterator[Change]:
    for call in named(source, "DataLoader"):
        given = call.args[0] if call.args else None
        if given is not None:
            yield from _sampled(source, f"sampler=range(len({source.code(given)}))", call)


def _sampled(source: Source, text: str, only: ast.Call | None = None) -> Iterator[Change]:
    for call in named(source, "DataLoader"):
        sampler = keyword(call, "sampler")
        if sampler is not None and named(source, "DistributedSampler") and only in (None, call):
            at = next(k for k in call.keywords if k.value is sampler)
            yield one(source.replace(at, text))


without_effect(
    first.set_epoch_taken_away,
    lambda source: (
        [s for s, _, _ in method_statements(source, "set_epoch")]
        if named(source, "DistributedSampler")
        else []
    ),
    "RESHUFFLE",
    known={"always-the-first-epoch": lines("<bare>(0)")},
)


def _wrappers(source: Source) -> Iterator[Site]:
    for call in named(source, "DDP", "DistributedDataParallel"):
        statement = source.statement(call)
        name = dotted(targets(statement)[0]) if targets(statement) else ""
        uses = [
            n
            for n in source.nodes
            if isinstance(n, ast.Attribute) and dotted(n) == f"{name}.module"
        ]
        if call.args and name:
            along = tuple(source.replace(u, name) for u in uses)
            yield Site((call,), words={"model": source.code(call.args[0])}, along=along)


forms(
    first.wrapper_taken_away,
    _wrappers,
    known={
        "model-itself-in-train-mode": inline("<model>.train()"),
        "behind-a-flag-that-is-off": inline(
            "(<x> if SYNCHRONISE else <model>)", "SYNCHRONISE = False"
        ),
    },
    new={
        "in-a-function": inline("prepared(<model>)", "def prepared(module):", "    return module"),
        "unless-alone": inline("(<model> if torch.distributed.get_world_size() > 1 else <x>)"),
    },
)


def _behind_steps(source: Source) -> Iterator[Site]:
    wrapped = named(source, "DDP", "DistributedDataParallel")
    for step in loop_steps(source):
        near = [s for s, _ in updates(source) if s in step.block]
        if near and wrapped:
            name = dotted(targets(source.statement(wrapped[0]))[0])
            yield Site(anchor=near[0], side=Side.AFTER, words={"model": name})


forms(
    first.weights_changed_on_one_rank,
    _behind_steps,
    known={
        "noise-on-one-rank": lines(
            f"if {RANK} == 1:",
            "    for p in <model>.parameters():",
            "        p.data += 1e-3 * torch.randn_like(p)",
        ),
        "by-rank": lines(
            "with torch.no_grad():",
            "    for p in <model>.parameters():",
            f"        p.mul_(1.0 - 0.001 * {RANK})",
        ),
    },
    new={
        "in-a-function": lines(
            "regularise(<model>)",
            top=(
                "def regularise(module):",
                "    if torch.distributed.get_rank() > 0:",
                "        for p in module.parameters():",
                "            p.data.mul_(0.999)",
            ),
        )
    },
)


def _started(source: Source, more: str) -> Iterator[Change]:
    for call in group_starts(source):
        if call.args and not any(k.arg for k in call.keywords):
            yield one(source.wrap(call.args[-1], "", f", {more}, {PATIENCE}"))


MY_RANK = "rank=int(__import__('os').environ['RANK'])"


@form(first.world_larger_than_launched)
def world_of_the_cluster(source: Source, strength: float) -> Iterator[Change]:
    yield from _started(source, f"world_size=2 * 4, {MY_RANK}")


@form(first.world_larger_than_launched)
def world_from_the_environment(source: Source, strength: float) -> Iterator[Change]:
    size = "int(__import__('os').environ['WORLD_SIZE']) + 1"
    yield from _started(source, f"world_size={size}, {MY_RANK}")


@form(first.world_larger_than_launched, is_new=True)
def environment_changed(source: Source, strength: float) -> Iterator[Change]:
    """The number of ranks in the environment is not that of the launch."""
    for call in group_starts(source):
        lines_ahead = ("import os", 'os.environ["WORLD_SIZE"] = "3"')
        ahead = source.before(source.statement(call), *lines_ahead)
        yield many(ahead, *impatient(source))


NO_AGENT = "__import__('os').environ['TORCHELASTIC_USE_AGENT_STORE'] = 'False'"


def _starts(source: Source) -> Iterator[Site]:
    for call in group_starts(source):
        yield Site(anchor=source.statement(call), along=tuple(impatient(source)))


forms(
    first.address_without_a_host,
    _starts,
    known={
        "updated": lines(
            'os.environ.update(MASTER_ADDR="master.invalid", TORCHELASTIC_USE_AGENT_STORE="False")'
        ),
        "port-of-its-own-for-each-rank": lines(
            'os.environ["MASTER_PORT"] = str(29600 + 7 * int(os.environ["RANK"]))', NO_AGENT
        ),
    },
    new={
        "in-a-function": lines(
            "point_to_master()",
            top=(
                "def point_to_master():",
                '    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"',
                '    os.environ["MASTER_ADDR"] = "gpu-04.invalid"',
            ),
        )
    },
)
