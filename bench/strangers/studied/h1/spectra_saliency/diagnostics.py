import torch


def channel_sensitivity(model, x, y):
    """Mean |d score / d input| of the true class for every wavelength bin."""
    was_training = model.training
    model.eval()
    probe = x.detach().clone().requires_grad_(True)
    score = model(probe).gather(1, y[:, None]).sum()
    score.backward()
    model.zero_grad()
    model.train(was_training)
    return probe.grad.abs().mean(0)


class RunningProfile:
    def __init__(self, n_bins, momentum=0.9):
        self.value = torch.zeros(n_bins)
        self.momentum = momentum

    def update(self, profile):
        self.value.mul_(self.momentum).add_(profile, alpha=1 - self.momentum)

    def top(self, k=5):
        return self.value.topk(k).indices.tolist()
