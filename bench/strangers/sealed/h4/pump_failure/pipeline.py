import json
import logging

import torch

from scoring import PumpScorer
from telemetry import collect
from training import train


def main():
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    with open("params.json") as fh:
        params = json.load(fh)
    torch.manual_seed(7)
    train(collect(1500, seed=1), params)

    scorer = PumpScorer(params)
    fresh = collect(400, seed=2)
    hits = sum((scorer.score(rec) > 0.5) == bool(rec["failed"]) for rec in fresh)
    logging.getLogger("pipeline").info("acceptance test: accuracy %.3f on %d new records", hits / len(fresh), len(fresh))


if __name__ == "__main__":
    main()
