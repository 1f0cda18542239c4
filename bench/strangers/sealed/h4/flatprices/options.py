import argparse

import yaml


def load_options(argv=None):
    """experiment.yaml, with anything given on the command line taking precedence"""
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", default="experiment.yaml")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--lr", type=float)
    parser.add_argument("--log-target", dest="log_target", action="store_true")
    args = vars(parser.parse_args(argv))
    with open(args.pop("file")) as fh:
        raw = yaml.safe_load(fh)
    options = {**raw["model"], **raw["training"]}
    options.update({k: v for k, v in args.items() if v is not None})
    return options
