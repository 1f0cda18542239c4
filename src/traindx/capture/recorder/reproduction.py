"""Writes `repro.py`: the model, its weights and the inputs of a step that failed, on their own."""

from __future__ import annotations

import time
from collections import UserDict
from pathlib import Path
from typing import Any

import torch

from .caught import type_name, unwrap
from .extraction import Extraction, literal
from .incident_files import MAX_BYTES, Flat, save
from .isolation import untouched
from .model_source import model_source
from .replay_mode import HasEffects, ReplayTimeout, Watcher, has_bad

TIME_S = 10.0
# An exception of these kinds is about the machine, or about a device that is broken by now.
_NOT_AGAIN = ("OutOfMemory", "AcceleratorError", "KeyboardInterrupt", "SystemExit", "MemoryError")

_READER = '''
def _read(name):
    """Return the tensors of a safetensors file."""
    raw = bytearray((pathlib.Path(__file__).parent / name).read_bytes())
    start = 8 + int.from_bytes(raw[:8], "little")
    found = {}
    for key, entry in json.loads(raw[8:start]).items():
        first, last = entry["data_offsets"]
        flat = torch.zeros(last - first, dtype=torch.uint8, device="cpu")
        if last > first:
            flat = torch.frombuffer(raw, dtype=torch.uint8, offset=start + first)[: last - first]
        kind = getattr(torch, _TYPES[entry["dtype"]])
        found[key] = flat.clone().view(kind).reshape(entry["shape"])
    return found
'''


def write(folder: str, forward: Any, *, error_type: str) -> bool:
    """Write a script that fails as the step did; if that is in doubt, write nothing."""
    target = Path(folder)
    written = [target / name for name in ("model.safetensors", "inputs.safetensors", "repro.py")]
    try:
        random = target / "rng.safetensors"
        text = _script(forward, error_type, has_random=random.exists())
        if not _fails_again(forward, error_type, target):
            return False
        model = unwrap(forward.module)
        state = dict(model.state_dict())
        inputs = Flat(_given(forward)).tensors
        if save(written[0], state, MAX_BYTES) or save(written[1], inputs, MAX_BYTES):
            raise ValueError("not all of it can be kept")
        written[2].write_text(text, encoding="utf-8")
        return True
    except (Exception, ReplayTimeout, HasEffects):  # a convenience: the incident is kept without it
        for path in written:
            path.unlink(missing_ok=True)
        return False


def _given(forward: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(forward.args), dict(forward.kwargs)


# ------------------------------------------------------------------------------------------ script


def _script(forward: Any, error_type: str, *, has_random: bool) -> str:
    model = unwrap(forward.module)
    extraction = Extraction()
    expression = model_source(model, extraction)
    arguments, keywords = _given(forward)
    positional = [_value_source(value, str(i), "0.") for i, value in enumerate(arguments)]
    named = [f"{name}={_value_source(value, name, '1.')}" for name, value in keywords.items()]
    what = error_type or "the output is not finite"
    future = "from __future__ import annotations\n\n" if extraction.has_future else ""
    imports = ["import json", "import pathlib", "import torch", *extraction.imports]
    lines = [
        f'"""Fails as a recorded step did: {what}. Needs torch and the files beside it."""',
        "",
        future + "\n".join(dict.fromkeys(imports)),
        "",
        *(f"\n{piece}\n" for piece in extraction.pieces),
        "",
        f"_TYPES = {_types()!r}",
        "",
        _READER,
        "",
        f"_model = {expression}",
        "try:",
        '    _model.load_state_dict(_read("model.safetensors"), assign=True)',
        "except RuntimeError as error:",
        '    raise SystemExit(f"the model was changed after it was built: {error}")',
        f"_model.train({model.training})",
        *_modes(model),
        '_inputs = _read("inputs.safetensors")',
        *(['torch.set_rng_state(_read("rng.safetensors")["cpu"])'] if has_random else []),
        f"_output = _model({', '.join(positional + named)})",
        *([] if error_type else _finite_check()),
    ]
    text = "\n".join(lines) + "\n"
    compile(text, "repro.py", "exec", dont_inherit=True)
    return text


def _types() -> dict[str, str]:
    from .incident_files import DTYPES

    return {short: name for name, short in DTYPES.items()}


def _modes(model: Any) -> list[str]:
    odd = [name for name, part in model.named_modules() if part.training != model.training]
    if not odd:
        return []
    if len(odd) > 500:
        raise ValueError("too many modules in another mode")
    return [
        f"for _name in {odd!r}:",
        f"    _model.get_submodule(_name).training = {not model.training}",
    ]


def _finite_check() -> list[str]:
    return [
        "",
        "",
        "def _tensors(value):",
        '    """Yield the tensors of the output."""',
        "    if isinstance(value, torch.Tensor):",
        "        yield value",
        "        return",
        "    if not isinstance(value, (list, tuple)):",
        "        value = list((value if isinstance(value, dict) else vars(value)).values())",
        "    for item in value:",
        "        if isinstance(item, (torch.Tensor, list, tuple, dict)):",
        "            yield from _tensors(item)",
        "",
        "",
        "for _tensor in _tensors(_output):",
        "    if _tensor.is_floating_point() and not torch.isfinite(_tensor).all():",
        '        raise FloatingPointError("the output is not finite")',
    ]


def _value_source(value: Any, name: str, prefix: str) -> str:
    """Return source for an argument, with its tensors taken from the file of inputs."""
    key = prefix + name
    if isinstance(value, torch.Tensor):
        return f"_inputs[{key!r}]"
    if type(value) in (list, tuple):
        inner = [_value_source(item, str(i), f"{key}.") for i, item in enumerate(value)]
        end = "," if len(inner) == 1 and type(value) is tuple else ""
        return f"[{', '.join(inner)}]" if type(value) is list else f"({', '.join(inner)}{end})"
    if isinstance(value, (dict, UserDict)):
        pairs = [f"{k!r}: {_value_source(v, str(k), f'{key}.')}" for k, v in value.items()]
        return "{" + ", ".join(pairs) + "}"
    text = literal(value)
    if not text:
        raise ValueError(f"an argument of type {type(value).__name__}")
    return text


# -------------------------------------------------------------------------------------------- trial


def _fails_again(forward: Any, error_type: str, folder: Path) -> bool:
    """Say whether the forward pass alone fails as the step did, without a trace of the trial."""
    if any(kind in error_type for kind in _NOT_AGAIN):
        return False
    model = unwrap(forward.module)
    parts = list(model.modules())
    arguments, keywords = _given(forward)
    with untouched(parts, _random_state(folder)):
        own = [buffer for part in parts for buffer in part.buffers(recurse=False)]
        watcher = Watcher(time.monotonic() + TIME_S, is_looking=False, own=own)
        try:
            with watcher, torch.enable_grad():
                output = model(*arguments, **keywords)
        except Exception as error:
            return type_name(type(error)) == error_type
        if error_type:
            return False
        return any(has_bad(tensor) for tensor in Flat(output).tensors.values())


def _random_state(folder: Path) -> Any:
    path = folder / "rng.safetensors"
    if not path.exists():
        return None
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    size = torch.get_rng_state().numel()  # the state of the processor is the first in the file
    return torch.tensor(list(raw[start : start + size]), dtype=torch.uint8, device="cpu")
