"""Where the weights of a program come from: its own beginning, or another run."""

from __future__ import annotations

import re

from traindx.model import Run

# calls, packages and files that bring weights along; a word too many only costs a remark
_LOADED = re.compile(
    r"load_state_dict|load_weights|from_pretrained|pretrained|weights\s*=|torch\.load|load_check"
    r"|load_file|load_model|timm\.|hub\.load|open_clip|\.ckpt|safetensors|resume_from"
    r"|torchvision\.models|sentence.?transformers|diffusers|fairseq"
)


def loads_weights(run: Run) -> bool:
    """Tell whether the source that is at hand may begin with weights of another run."""
    return any(_LOADED.search(source.text) for source in run.sources)
