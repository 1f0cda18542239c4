"""Libraries that open files below Python: the paths they are given are led to the copy."""

from __future__ import annotations

import functools
import sys

from . import programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Ward

READ, PLACE, CHANGE, EMPTY = "read", "place", "change", "empty"

# module: (function or Class.method, position of the path, its keyword, how it is meant)
_CALLS: dict[str, tuple[tuple[str, int, str, str], ...]] = {
    "torch.serialization": (("save", 1, "f", EMPTY), ("load", 0, "f", READ)),
    "torch.jit._serialization": (("save", 1, "f", EMPTY), ("load", 0, "f", READ)),
    "torch.autograd.profiler": (("profile.export_chrome_trace", 1, "path", EMPTY),),
    "torch.profiler.profiler": (
        ("_KinetoProfile.export_chrome_trace", 1, "path", EMPTY),
        ("_KinetoProfile.export_memory_timeline", 1, "path", EMPTY),
    ),
    "safetensors": (("serialize_file", 1, "filename", EMPTY), ("safe_open", 0, "filename", READ)),
    "sqlite3.dbapi2": (("connect", 0, "database", CHANGE),),
    "h5py._hl.files": (("File.__init__", 1, "name", CHANGE),),
    "shutil": (("rmtree", 0, "path", EMPTY),),
    "cv2": (("imwrite", 0, "filename", EMPTY), ("imread", 0, "filename", READ)),
    "pyarrow.parquet.core": (("write_table", 1, "where", EMPTY),),
    "transformers.tokenization_utils_fast": (
        ("PreTrainedTokenizerFast._save_pretrained", 1, "save_directory", CHANGE),
    ),
    "mlflow.tracking._tracking_service.utils": (("set_tracking_uri", 0, "uri", "tracker"),),
    "wandb.sdk.wandb_init": (("init", -1, "mode", "disabled"),),
    "subprocess": (),
}


def install(ward: Ward) -> None:
    """Wrap what is imported already, and the rest as it comes."""
    for name in _CALLS:
        if name in sys.modules:
            _wrap(ward, sys.modules[name])
    sys.meta_path.insert(0, Arrivals(ward))


class Arrivals:
    """Lets imports go their usual way, and wraps the calls of a module that has come."""

    def __init__(self, ward: Ward) -> None:
        self._ward = ward

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a module as everybody else would; nothing for those that are of no concern."""
        if path is None:  # the program may have put its own folder there
            for i, entry in enumerate(sys.path):
                sys.path[i] = self._ward.imported(entry)
        if name not in _CALLS:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find else None
            if spec is not None:
                self._follow(getattr(spec, "loader", None))
                return spec
        return None

    def _follow(self, loader: Any) -> None:
        load = getattr(loader, "exec_module", None)
        if load is None:
            return

        def exec_module(module: Any) -> None:
            load(module)
            _wrap(self._ward, module)

        loader.exec_module = exec_module


def _wrap(ward: Ward, module: Any) -> None:
    if module.__name__ == "subprocess":
        programs.watch(ward, module)
    for name, position, keyword, meant in _CALLS[module.__name__]:
        owner = module
        *classes, last = name.split(".")
        for part in classes:
            owner = getattr(owner, part, None)
        real = getattr(owner, last, None)
        if real is not None:
            setattr(owner, last, _leading(ward, real, position, keyword, meant))


def _leading(
    ward: Ward, real: Callable[..., Any], position: int, keyword: str, meant: str
) -> Callable[..., Any]:
    @functools.wraps(real, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        if meant == "disabled":
            kwargs[keyword] = meant
        elif position < len(given):
            given[position] = _led(ward, given[position], meant)
        elif keyword in kwargs:
            kwargs[keyword] = _led(ward, kwargs[keyword], meant)
        return real(*given, **kwargs)

    return call


def _led(ward: Ward, value: Any, meant: str) -> Any:
    if meant == "tracker":
        import os

        ward.tell("kept offline", f"MLflow, which was to report to {value}")
        return os.environ.get("MLFLOW_TRACKING_URI", value)
    is_name = isinstance(value, str) and value in ("", ":memory:")
    is_path = isinstance(value, (str, bytes)) or hasattr(value, "__fspath__")
    if not is_path or is_name or (isinstance(value, str) and value.startswith("file:")):
        return value
    return ward.led(value, meant)
