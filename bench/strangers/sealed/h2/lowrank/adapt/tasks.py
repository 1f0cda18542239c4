import torch


def teacher_task(n, seed, shift=0.0):
    """Labels from a fixed random two layer teacher; shift rotates the inputs a little."""
    g = torch.Generator().manual_seed(77)
    w1, w2 = torch.randn(16, 24, generator=g), torch.randn(24, 5, generator=g)
    direction = torch.randn(16, 2, generator=g)
    x = torch.randn(n, 16, generator=torch.Generator().manual_seed(seed))
    moved = x + shift * (x @ direction) @ direction.T / 16
    return x, (torch.relu(moved @ w1) @ w2).argmax(1)
