"""Runs at the start of every Python process below `traindx run`, and hands on to the one it hides.

A process that never imports torch pays for these few lines and nothing else.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))


class TorchImport:
    """Waits for torch: the import goes its usual way, and what follows it is the recorder."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Find torch as everybody else would, and call the recorder once it is imported."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        loader = getattr(spec, "loader", None)
        if loader is not None:
            load = loader.exec_module

            def exec_module(module: Any) -> None:
                del loader.exec_module
                load(module)
                _arm()

            loader.exec_module = exec_module
        return spec


def _arm() -> None:
    """Let experiments change torch, and then record what comes of it."""
    interventions = sys.modules.get("traindx_interventions")
    session = None
    try:
        if interventions is not None:
            interventions.arm()
        if not os.environ.get("TRAINDX_UNRECORDED"):
            recorder = _load("traindx_recorder", os.path.dirname(HERE))
            session = recorder.ride_along()
    except Exception as error:  # a recorder that fails must not be noticed by the training
        print(f"traindx: not recording: {type(error).__name__}: {error}", file=sys.stderr)
    if interventions is not None:
        interventions.settle(session)


def _intervene() -> None:
    """Load the interventions, some of which begin before the program does."""
    try:
        _load("traindx_interventions", os.environ["TRAINDX_INTERVENTIONS_HOME"]).begin()
    except Exception as error:
        print(f"traindx: not changed: {type(error).__name__}: {error}", file=sys.stderr)
        if '"guard"' in os.environ["TRAINDX_INTERVENTIONS"]:  # its files would be within reach
            os._exit(70)


def _load(name: str, folder: str) -> Any:
    """Load a package from its folder, whether or not traindx is installed here."""
    from importlib.util import module_from_spec, spec_from_file_location

    start = os.path.join(folder, "__init__.py")
    spec: Any = spec_from_file_location(name, start, submodule_search_locations=[folder])
    package = module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    return package


def _hand_on() -> None:
    """Run the `sitecustomize` that this one stands in front of, and leave the path as it was."""
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.curdir) != HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or os.path.abspath(spec.origin or "") == __file__:
        return
    from importlib.util import module_from_spec

    hidden = module_from_spec(spec)
    sys.modules["sitecustomize"] = hidden
    spec.loader.exec_module(hidden)


if os.environ.get("TRAINDX_INTERVENTIONS"):
    _intervene()
if os.environ.get("TRAINDX_RECORDING") or os.environ.get("TRAINDX_INTERVENTIONS"):
    sys.meta_path.insert(0, TorchImport())
_hand_on()
