import torch
import torch.nn.functional as F


def forward_batch(model, batch):
    """One forward pass, returns (loss, predictions)."""
    model.train()
    user, item, rating = batch
    pred = model(user, item)
    return F.mse_loss(pred, rating), pred


def fit_epoch(model, loader, opt):
    total, n = 0.0, 0
    for batch in loader:
        loss, _ = forward_batch(model, batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(batch[0])
        n += len(batch[0])
    return (total / n) ** 0.5


@torch.no_grad()
def rmse(model, loader):
    model.eval()
    se, n = 0.0, 0
    for batch in loader:
        loss, pred = forward_batch(model, batch)
        se += loss.item() * len(pred)
        n += len(pred)
    return (se / n) ** 0.5
