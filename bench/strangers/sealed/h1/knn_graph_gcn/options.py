import argparse

import yaml


def load_options():
    """Values from the experiment file; anything given on the command line wins."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="experiment.yaml")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--hidden", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with open(args.config) as f:
        options = yaml.safe_load(f)
    options.update(vars(args))
    return argparse.Namespace(**options)
