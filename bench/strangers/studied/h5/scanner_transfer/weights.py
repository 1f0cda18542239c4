import torch


def export(model, path):
    torch.save(model.state_dict(), path)


def warm_start(model, path):
    """Take over all tensors of a checkpoint that fit into the model (the heads never do)."""
    stored = torch.load(path, map_location="cpu")
    own = model.state_dict()
    fitting = {k: v for k, v in stored.items() if k in own and v.shape == own[k].shape}
    own.update(fitting)
    model.load_state_dict(own)
    return model
