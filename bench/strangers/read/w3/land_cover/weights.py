import torch


def save_classifier(model, path):
    torch.save({"state_dict": model.state_dict()}, path)


def load_backbone(backbone, path):
    """Initialise a bare backbone from a saved classifier; its head is left behind."""
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    state = {k.lstrip("backbone."): v for k, v in state.items() if k.startswith("backbone.")}
    backbone.load_state_dict(state, strict=False)
    return len(state)
