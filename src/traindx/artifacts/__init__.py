"""The artifacts of a run: from paths, folders, standard input and context packages to one run."""

from __future__ import annotations

from traindx.artifacts.folders import find_runs
from traindx.artifacts.opening import open_paths

__all__ = ["find_runs", "open_paths"]
