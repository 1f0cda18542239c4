import argparse
import dataclasses
import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ModelCfg:
    hidden: int = 32
    layers: int = 1
    dropout: float = 0.0


@dataclass(frozen=True)
class TrainCfg:
    lr: float = 1e-4
    weight_decay: float = 0.0
    epochs: int = 4
    batch: int = 32
    seed: int = 0


@dataclass(frozen=True)
class Settings:
    model: ModelCfg = field(default_factory=ModelCfg)
    train: TrainCfg = field(default_factory=TrainCfg)


def _typed(section, key, text):
    kinds = {f.name: type(getattr(section, f.name)) for f in dataclasses.fields(section)}
    if key not in kinds:
        raise SystemExit(f"no such setting: {key}")
    return kinds[key](text)


def load_settings(argv=None):
    """Defaults, then the json file, then `section.key=value` words from the command line."""
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", default="experiment.json")
    ap.add_argument("overrides", nargs="*", help="e.g. train.lr=0.01 model.hidden=64")
    args = ap.parse_args(argv)

    settings = Settings()
    with open(args.config) as fh:
        for section, values in json.load(fh).items():
            part = dataclasses.replace(getattr(settings, section), **values)
            dataclasses.replace(settings, **{section: part})

    for word in args.overrides:
        path, text = word.split("=", 1)
        section, key = path.split(".")
        part = getattr(settings, section)
        part = dataclasses.replace(part, **{key: _typed(part, key, text)})
        settings = dataclasses.replace(settings, **{section: part})
    return settings
