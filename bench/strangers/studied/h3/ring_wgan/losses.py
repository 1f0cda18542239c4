import torch


def gradient_penalty(net, real, fake):
    eps = torch.rand(len(real), 1, device=real.device)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = net(mix)
    grad, = torch.autograd.grad(score.sum(), mix, create_graph=True)
    return (grad.norm(dim=1) - 1).pow(2).mean()
