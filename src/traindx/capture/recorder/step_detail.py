"""A close look at a step: the graph of its loss, and the parameters before they are changed."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from . import graph, graph_probe, loader_passes, places, samples

if TYPE_CHECKING:
    from .current_step import Forward
    from .knowledge import Owner
    from .session import Session

MAX_SEARCHES = 3  # for models that came into the loss later


def look_at_graph(session: Session, loss: torch.Tensor) -> None:
    """See what a loss was made of."""
    began = perf_counter()
    for owner in session.known.owners.values():
        if owner.steps and not owner.is_clear:
            owner.is_clear = samples.are_clear(owner.watched())
    if "losses" not in session.seen:
        nodes = graph.walk(loss)
        session.now.target = graph_probe.target(nodes)
        if session.searches < MAX_SEARCHES and session.known.is_unknown(nodes):
            session.searches += 1
            session.discover(loss)
        kept, past = session.graphs.kept(session.steps)
        session.graphs.mark(session.steps, nodes)
        session.seen = {
            "graph_nodes": len(nodes),
            "kept_graphs": kept,
            "past_graphs": past,
            "losses": graph_probe.losses(nodes),
            "activations": graph_probe.activations(nodes, session.known.names),
            "place": places.user_place(),
        }
    session.seen["cost"] = session.seen.get("cost", 0.0) + perf_counter() - began


def look_at_parameters(session: Session, owner: Owner, optimizer: torch.optim.Optimizer) -> None:
    """See weights and gradients before an optimizer's step."""
    began = perf_counter()
    owner.look = samples.ParameterSnapshot(session.known.parameters_of(optimizer))
    owner.seen = {
        "carried": None if owner.is_clear is None else not owner.is_clear,
        "cleared": owner.had_gradients and samples.are_clear(owner.watched()),
        "pending": [
            o.number
            for o in session.known.owners.values()
            if o is not owner and not samples.are_clear(o.watched())
        ],
        **session.seen,
    }
    owner.seen["cost"] = owner.seen.get("cost", 0.0) + perf_counter() - began


def evaluation(session: Session, forward: Forward, *, has_grad: bool) -> dict[str, Any]:
    """Return what is to be said of a model that is called in another way than in training."""
    module = forward.module
    number, parts = session.known.parts_of(module)
    is_shown = session.entrances.is_worth_a_look(module)
    return {
        "step": session.steps,
        "model": number,
        "is_training": bool(module.training),
        "has_grad": has_grad,
        "live": [name for name, part in parts if part.training][: samples.SHOWN_MODES],
        "loader": session.loaders.current,
        "entered": session.entrances.number(module) if is_shown else None,
        "inputs": loader_passes.summaries(forward.given()) if is_shown else [],
        "place": places.user_place(),
    }
