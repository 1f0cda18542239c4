import argparse
import pathlib

import yaml

HERE = pathlib.Path(__file__).parent


def settings(argv=None):
    with open(HERE / "default.yaml") as f:
        cfg = yaml.safe_load(f)
    p = argparse.ArgumentParser()
    p.add_argument("--config")
    for k, v in cfg.items():
        conv = (lambda s: s.lower() in ("1", "true", "yes")) if isinstance(v, bool) else type(v)
        p.add_argument(f"--{k}", type=conv, default=None)
    args = vars(p.parse_args(argv))
    path = args.pop("config")
    if path:
        with open(path) as f:
            cfg.update(yaml.safe_load(f))
    cfg.update({k: v for k, v in args.items() if v is not None})
    return argparse.Namespace(**cfg)
