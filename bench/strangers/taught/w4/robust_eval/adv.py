import torch
import torch.nn.functional as F


def pgd(model, x, y, eps=0.12, alpha=0.03, steps=5):
    """L-inf attack around x; the model's parameter gradients are left untouched"""
    delta = torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model(x + delta), y)
        (g,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + alpha * g.sign()).clamp_(-eps, eps)
        delta = (x + delta).clamp_(0, 1) - x
    return (x + delta).detach()


def robust_accuracy(model, loader, device):
    model.eval()
    clean = robust = n = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        x_adv = pgd(model, x, y)
        with torch.no_grad():
            clean += (model(x).argmax(1) == y).sum().item()
            robust += (model(x_adv).argmax(1) == y).sum().item()
        n += len(y)
    return clean / n, robust / n
