"""Ranks that do not do the same. Every fault ends within seconds by a short timeout."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, method, modules, updates
from bench.corpus.operators import Change, Judged, crash, many, one, operator
from bench.corpus.source import Edit, Source
from bench.corpus.syntax import dotted, keyword, method_statements, named, targets

PATIENCE = "timeout=__import__('datetime').timedelta(seconds=20)"
RANK = "torch.distributed.get_rank()"  # a name may be out of scope


def group_starts(source: Source) -> list[ast.Call]:
    return named(source, "init_process_group")


def impatient(source: Source) -> list[Edit]:
    """Return the edit that makes a hang end by itself."""
    found = []
    for call in group_starts(source):
        if call.args and keyword(call, "timeout") is None:
            final = [*call.args, *(k.value for k in call.keywords)][-1]
            found.append(source.wrap(final, "", f", {PATIENCE}"))
    return found


@crash("ddp-unused-parameters", accepted=("unused-parameters",))
def layer_without_gradient(source: Source, strength: float) -> Iterator[Change]:
    """DDP waits for the gradient of a layer that nothing depends on."""
    if not named(source, "DDP", "DistributedDataParallel"):
        return
    for klass in modules(source):
        init = method(klass, "__init__")
        if init is not None:
            yield one(source.after(init.body[-1], "self.auxiliary = nn.Linear(8, 8)"))


@crash("collective-mismatch")
def first_rank_waits_alone(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        if group_starts(source):
            lines = (f"if {RANK} == 0:", "    torch.distributed.barrier()")
            yield many(source.before(step.backward, *lines), *impatient(source))


@crash("collective-mismatch")
def reduction_of_other_shape(source: Source, strength: float) -> Iterator[Change]:
    for call in named(source, "all_reduce"):
        if call.args and isinstance(call.args[0], ast.Name) and group_starts(source):
            new = f"torch.zeros(1 + {RANK} * 3)"
            yield many(source.replace(call.args[0], new), *impatient(source))


@crash("rank-failed-first")
def second_rank_finds_bad_record(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        if group_starts(source):
            lines = (
                f"if {RANK} == 1 and {step.loss}.item() < 1.0:",
                '    raise KeyError("record 1207 has no field label")',
            )
            yield many(source.before(step.backward, *lines), *impatient(source))


@crash("uneven-inputs", accepted=("collective-mismatch",))
def second_rank_has_fewer_batches(source: Source, strength: float) -> Iterator[Change]:
    """The ranks then meet in different collectives: the uneven loop is why."""
    for step in loop_steps(source):
        loop = source.around(step.backward, ast.For)
        if group_starts(source) and isinstance(loop, ast.For) and loop.body is step.block:
            told = source.replace(
                loop.iter, f"list({source.code(loop.iter)})[: -5 if {RANK} == 1 else None]"
            )
            yield many(told, *impatient(source))


@operator("missing-distributed-sampler", judged=Judged.BY_LOG)
def sampler_taken_away(source: Source, strength: float) -> Iterator[Change]:
    for call in named(source, "DataLoader"):
        sampler = keyword(call, "sampler")
        if sampler is not None and named(source, "DistributedSampler"):
            at = next(k for k in call.keywords if k.value is sampler)
            yield one(source.replace(at, "shuffle=True"))


@operator("sampler-epoch-not-set", judged=Judged.BY_LOG)
def set_epoch_taken_away(source: Source, strength: float) -> Iterator[Change]:
    for statement, _, _ in method_statements(source, "set_epoch"):
        made = named(source, "DistributedSampler")
        if made:
            yield Change((source.drop(statement),), source.statement(made[0]))


@operator("rank-desync", judged=Judged.BY_LOG)
def wrapper_taken_away(source: Source, strength: float) -> Iterator[Change]:
    """Each rank trains a model of its own."""
    for call in named(source, "DDP", "DistributedDataParallel"):
        statement = source.statement(call)
        name = dotted(targets(statement)[0]) if targets(statement) else ""
        uses = [
            n
            for n in source.nodes
            if isinstance(n, ast.Attribute) and dotted(n) == f"{name}.module"
        ]
        if call.args and name:
            yield many(
                source.replace(call, source.code(call.args[0])),
                *(source.replace(u, name) for u in uses),
            )


@operator("rank-desync", judged=Judged.BY_LOG)
def weights_changed_on_one_rank(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        near = [s for s, _ in updates(source) if s in step.block]
        wrapped = named(source, "DDP", "DistributedDataParallel")
        if near and wrapped:
            name = dotted(targets(source.statement(wrapped[0]))[0])
            lines = (
                f"if {RANK} == 1:",
                "    with torch.no_grad():",
                f"        for p in {name}.parameters():",
                "            p.mul_(0.999)",
            )
            yield one(source.after(near[0], *lines))


@crash("rendezvous-failure")
def world_larger_than_launched(source: Source, strength: float) -> Iterator[Change]:
    for call in group_starts(source):
        if call.args and not any(k.arg for k in call.keywords):
            rank = "rank=int(__import__('os').environ['RANK'])"
            final = call.args[-1]
            yield one(source.wrap(final, "", f", world_size=3, {rank}, {PATIENCE}"))


@crash("rendezvous-failure")
def address_without_a_host(source: Source, strength: float) -> Iterator[Change]:
    for call in group_starts(source):
        statement = source.statement(call)
        lines = (
            "__import__('os').environ['MASTER_ADDR'] = 'node-17.invalid'",
            "__import__('os').environ['TORCHELASTIC_USE_AGENT_STORE'] = 'False'",
        )
        yield many(source.before(statement, *lines), *impatient(source))
