"""Everything a restart needs, per rank where it differs between ranks."""
import os
import random

import numpy as np
import torch
import torch.distributed as dist


def rng_state():
    s = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        s["cuda"] = torch.cuda.get_rng_state()
    return s


def set_rng_state(s):
    random.setstate(s["python"])
    np.random.set_state(s["numpy"])
    torch.set_rng_state(s["torch"])
    if "cuda" in s:
        torch.cuda.set_rng_state(s["cuda"])


def save(path, ddp, parts, **numbers):
    rngs = [None] * dist.get_world_size()
    dist.all_gather_object(rngs, rng_state())
    if dist.get_rank() == 0:
        blob = {"net": ddp.module.state_dict(), "rng": rngs, **{k: p.state_dict() for k, p in parts.items()}, **numbers}
        torch.save(blob, str(path) + ".part")
        os.replace(str(path) + ".part", path)
    dist.barrier()


def load(path, ddp, parts):
    # our own file, contains numpy/python generator states
    blob = torch.load(path, map_location="cpu", weights_only=False)
    ddp.module.load_state_dict(blob["net"])
    for k, p in parts.items():
        p.load_state_dict(blob[k])
    set_rng_state(blob["rng"][dist.get_rank()])
    return blob
