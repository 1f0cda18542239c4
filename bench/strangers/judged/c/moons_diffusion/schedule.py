import torch


class NoiseSchedule:
    """Linear-beta DDPM schedule with the usual derived quantities."""

    def __init__(self, steps=100, beta_min=1e-4, beta_max=0.05):
        self.steps = steps
        self.betas = torch.linspace(beta_min, beta_max, steps)
        self.alphas = 1.0 - self.betas
        self.alpha_bar = torch.cumprod(self.alphas, dim=0)

    def q_sample(self, x0, t, noise):
        ab = self.alpha_bar[t].unsqueeze(-1)
        return ab.sqrt() * x0 + (1.0 - ab).sqrt() * noise

    def p_mean(self, xt, t, eps):
        """posterior mean for an integer step t"""
        a, ab, b = self.alphas[t].item(), self.alpha_bar[t].item(), self.betas[t].item()
        return (xt - b / (1 - ab) ** 0.5 * eps) / a ** 0.5, b ** 0.5
