"""What a session has seen, written as records."""

from __future__ import annotations

import time
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from . import host, loader_passes, samples
from .rows import Losses

if TYPE_CHECKING:
    from .knowledge import Owner
    from .record_writer import Writer
    from .session import Session

COUNTED_EVERY_S = 5.0
LOADERS_EVERY_S = 0.25  # a record closes a block of steps, and some passes take milliseconds


def tell_sample(session: Session, owner: Owner) -> None:
    """Tell what was seen by a close look at a step."""
    began = perf_counter()
    look, seen = owner.look, owner.seen
    owner.look, owner.seen = None, {}
    if look is None or session.writer is None:
        return
    now = session.now
    session.rows.drain(session.writer, at_once=True)  # so that order is kept
    columns = look.after()
    if session.told_names.get(owner.number) == columns["names"]:
        del columns["names"]
    else:
        session.told_names[owner.number] = columns["names"]
    if now.losses.is_closure:  # the backward passes came after the look
        columns["grad_norms"] = samples.gradient_norms(look.named)
        seen = {**session.seen, "carried": None if owner.is_clear is None else not owner.is_clear}
    cost = seen.pop("cost", 0.0)
    record = {"step": owner.steps, "optimizer": owner.number, **columns, **seen}
    record["loss"] = now.losses.total() if now.losses.are_here() else None
    if now.late_clip is not None and not now.is_clipped:
        record["late_clip"] = now.late_clip
    record.update(session.known.modes_of(owner))
    known: loader_passes.Known = {}
    record["batch"] = loader_passes.summaries(now.given(), known)
    if now.inputs:
        record["entered"] = session.entrances.number(now.inputs[0].module)
        record["inputs"] = loader_passes.summaries(now.inputs[0].given(), known)
    record["repeated"], record["relabelled"] = session.examples.meet(now.labelled())
    record["rss_bytes"], record["device_bytes"] = host.memory()
    session.writer.write("sample", record)
    session.sampled.discard(owner.number)
    session.budget.looked(cost + perf_counter() - began)


def tell_step(
    session: Session, owner: Owner, optimizer: torch.optim.Optimizer, writer: Writer
) -> bool:
    """Tell the numbers of a step; return whether all losses that have arrived were finite."""
    now = session.now
    phases = session.clock.end(session.budget.spent_s)
    if now.losses.values:
        session.clock.durations.append(phases[-1])
    norm, limit = now.clip or (None, None)
    settings = (_rate(optimizer), norm, limit, now.scale())
    size = loader_passes.batch_size(now.given())
    session.rows.add((owner.number, owner.steps), now.losses, settings, phases, size)
    tell_fingerprint(session, owner, writer)
    return session.rows.drain(writer)


def tell_unstepped(session: Session, writer: Writer) -> None:
    """Tell the losses of a run that never took a step, a row for each."""
    for number, value in enumerate(session.now.losses.values if not session.steps else ()):
        losses = Losses()
        losses.values.append(value)
        session.rows.add((0, number), losses, (None,) * 4, (nan,) * 5, None)
        session.rows.drain(writer, at_once=True)


def tell_loaders(session: Session, *, is_due: bool = True) -> None:
    """Tell of the passes over data since the last time; sometimes, where it is not due."""
    is_late = perf_counter() - session.told_loaders > LOADERS_EVERY_S
    if session.writer is None or not (is_due or is_late):
        return
    session.told_loaders = perf_counter()
    for kind, record in session.loaders.untold:
        session.writer.write(kind, record)
    session.loaders.untold.clear()


def tell_loads(session: Session) -> None:
    """Tell of weights that were loaded, as soon as something is told at all."""
    if session.writer is not None:
        for record in session.loads:
            session.writer.write("loaded", record)
        session.loads.clear()


def tell_fingerprint(session: Session, owner: Owner, writer: Writer) -> None:
    """Tell at some steps what ranks have to agree on."""
    step = owner.steps
    is_due = step & (step - 1) == 0 or step % 64 == 0
    if is_due and not owner.number and host.rank()[1] > 1:
        record = {
            "step": step,
            "parameters": session.known.fingerprint(),
            "batch": loader_passes.fingerprint(session.now.given()),
        }
        writer.write("fingerprint", record)


def tell_sources(writer: Writer) -> None:
    """Tell the user's files that the process has loaded by now."""
    files = host.sources()
    if files:
        writer.write("sources", {"files": files}, at_once=True)


def tell_counts_sometimes(session: Session, every_s: float = COUNTED_EVERY_S) -> None:
    """Tell the counts, if that was long ago."""
    if session.writer is not None and perf_counter() - session.counted > every_s:
        tell_counts(session)


def tell_counts(session: Session, *, is_end: bool = False, why_off: str = "") -> None:
    """Tell how many steps and passes there were, and what recording took."""
    session.counted = perf_counter()
    record: dict[str, Any] = {
        "time_s": time.time(),
        "steps": session.steps,
        "backwards": session.passes_backward(),
        "forwards": session.forwards,
        "samples": session.budget.looks,
        "scaled": session.scalings,
        "has_moved": session.known.has_moved(),
        "overhead": session.budget.overhead(),
        "is_end": is_end,
        "why_off": why_off,
    }
    if session.writer is not None:
        session.writer.write("counts", record, at_once=True)


def _rate(optimizer: torch.optim.Optimizer) -> float | None:
    rate = optimizer.param_groups[0].get("lr") if optimizer.param_groups else None
    if isinstance(rate, torch.Tensor):
        return float(rate.detach()) if rate.device.type == "cpu" else None
    return float(rate) if isinstance(rate, (int, float)) else None
