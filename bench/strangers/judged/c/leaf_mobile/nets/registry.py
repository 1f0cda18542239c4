_ARCH = {}


def register(name):
    def deco(fn):
        _ARCH[name] = fn
        return fn
    return deco


def build(name, **kwargs):
    if name not in _ARCH:
        raise KeyError(f"unknown architecture {name!r}, have {sorted(_ARCH)}")
    return _ARCH[name](**kwargs)
