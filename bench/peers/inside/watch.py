"""Hands a program's models, optimizers and losses to a peer, and writes down what the peer says."""

from __future__ import annotations

import atexit
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

peer = importlib.import_module("peer_inside")
places: set[int] = set()
failures: list[str] = []
held: list[tuple[Any, Any, int, bool]] = []


def attach(model: Any, optimizer: Any, place: int = 0, is_classifier: bool = False) -> Any:
    """Put the peer in place, once for each place in the source; its own errors go to the user."""
    if place not in places:
        places.add(place)
        peer.attach(model, optimizer, is_classifier)
        if len(places) == 1:
            atexit.register(_write)  # last in, first out: ahead of what the peer does at the end
    return optimizer


def hold(model: Any, optimizer: Any, place: int = 0, is_classifier: bool = False) -> Any:
    """Remember an optimizer that has no name where it is made."""
    held.append((model, optimizer, place, is_classifier))
    return optimizer


def attach_held() -> None:
    """Put the peer in place for what was remembered."""
    while held:
        attach(*held.pop(0))


def after_step(name: str, loss: Any, optimizer: Any = None) -> None:
    """Tell the peer of a step, if it wants to be told."""
    if hasattr(peer, "after_step"):
        value = float(loss.detach().float().mean()) if hasattr(loss, "detach") else float(loss)
        peer.after_step(name, value, optimizer)


def _write() -> None:
    alarms: list[dict[str, str]] = []
    try:
        alarms = peer.finish() if hasattr(peer, "finish") else []
    except Exception:
        failures.append(traceback.format_exc(limit=-3))
    told = {"alarms": alarms, "failures": failures, "python": sys.version.split()[0]}
    Path(os.environ["PEER_ANSWER"]).write_text(json.dumps(told), encoding="utf-8")
