"""Run every benchmark: each module of this package that has a `main`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import bench


def main() -> int:
    """Run the benchmarks one after the other and return the worst of their exit codes."""
    worst = 0
    for info in pkgutil.iter_modules(bench.__path__, "bench."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        if hasattr(module, "main"):
            print(f"\n## {info.name.removeprefix('bench.').replace('_', ' ')}\n", flush=True)
            worst = max(worst, module.main())
    return worst


if __name__ == "__main__":
    sys.exit(main())
