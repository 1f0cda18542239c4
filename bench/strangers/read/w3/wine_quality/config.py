import yaml

DEFAULTS = {"optimizer": "Adadelta", "lr": 1, "rho": 0.9, "epochs": 20, "batch_size": 32, "hidden": [32, 16], "seed": 0}


def load(text):
    """Defaults, overridden by the experiment file; values take the type of their default."""
    cfg = dict(DEFAULTS)
    for key, value in (yaml.safe_load(text) or {}).items():
        if key not in DEFAULTS:
            raise KeyError(f"unknown option {key!r}")
        cfg[key] = type(DEFAULTS[key])(value)
    return cfg
