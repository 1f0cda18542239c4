"""Run one job of the training.  The cluster gives us short slots, so a training is a chain of
jobs, each of which picks up where the last one stopped:

    python main.py              # the whole chain, one slot after the other
    python main.py --one-slot   # just the next slot
"""
import argparse
import json
import os

import torch

from engine import Engine
from model import GaitTagger
from signals import simulate


def job(cfg):
    torch.manual_seed(cfg["seed"])
    engine = Engine(GaitTagger(3, cfg["hidden"], cfg["classes"]), cfg)
    if os.path.exists(cfg["ckpt"]):
        engine.restore()
        print(f"restored {cfg['ckpt']} at epoch {engine.epoch}")
    engine.fit(simulate(400, seed=1), simulate(120, seed=2))
    return engine.epoch


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.json")
    parser.add_argument("--one-slot", action="store_true")
    args = parser.parse_args()
    with open(args.config) as f:
        cfg = json.load(f)
    done = job(cfg)
    while not args.one_slot and done < cfg["epochs"]:
        done = job(cfg)
