import torch


def gradient_penalty(critic, real, fake):
    eps = torch.rand(len(real), 1, device=real.device)
    mid = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(critic(mid).sum(), mid, create_graph=True)
    return (grad.norm(2, dim=1) - 1).pow(2).mean()


def critic_objective(critic, real, fake, weight):
    gap = critic(fake).mean() - critic(real).mean()
    return gap + weight * gradient_penalty(critic, real, fake), -gap.detach()


def generator_objective(critic, fake):
    return -critic(fake).mean()
