import torch


def predictions(model, loader, device):
    """Pairs (prediction, target), batch after batch."""
    model.eval()
    with torch.no_grad():
        return ((model(kind.to(device), adj.to(device), mask.to(device)), y.to(device))
                for kind, adj, mask, y in loader)


def regression_report(model, loader, device):
    se = ae = n = 0
    for pred, y in predictions(model, loader, device):
        diff = (pred - y).detach()
        se += diff.pow(2).sum().item()
        ae += diff.abs().sum().item()
        n += len(y)
    return {"rmse": (se / n) ** 0.5, "mae": ae / n}
