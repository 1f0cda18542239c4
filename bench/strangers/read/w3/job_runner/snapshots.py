import os
import random

import numpy as np
import torch


def _compact(optimizer):
    return {"param_groups": optimizer.state_dict()["param_groups"]}


def write(path, job):
    blob = {
        "epoch": job.epoch,
        "best": job.best,
        "model": job.model.state_dict(),
        "optimizer": _compact(job.optimizer),
        "scheduler": job.scheduler.state_dict(),
        "loader_rng": job.loader_rng.get_state(),
        "rng": {"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate()},
    }
    tmp = f"{path}.part"
    torch.save(blob, tmp)
    os.replace(tmp, path)


def restore(path, job):
    blob = torch.load(path, map_location="cpu", weights_only=False)
    job.epoch, job.best = blob["epoch"], blob["best"]
    job.model.load_state_dict(blob["model"])
    merged = job.optimizer.state_dict()
    merged.update(blob["optimizer"])
    job.optimizer.load_state_dict(merged)
    job.scheduler.load_state_dict(blob["scheduler"])
    job.loader_rng.set_state(blob["loader_rng"])
    torch.set_rng_state(blob["rng"]["torch"])
    np.random.set_state(blob["rng"]["numpy"])
    random.setstate(blob["rng"]["python"])
