"""Deep ensemble with torch.func: all members are trained at once by vmap."""
import copy

import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

MEMBERS, STEPS, LR = 5, 160, 3e-3


def member():
    return nn.Sequential(nn.Linear(10, 40), nn.SiLU(), nn.Linear(40, 40), nn.SiLU(), nn.Linear(40, 2))


def load():
    x, y = load_diabetes(return_X_y=True)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.25, random_state=0)
    mx, sx, my, sy = xa.mean(0), xa.std(0), ya.mean(), ya.std()
    f = lambda a: torch.tensor(a, dtype=torch.float32)
    return f((xa - mx) / sx), f((ya - my) / sy), f((xb - mx) / sx), f((yb - my) / sy), float(sy)


def split(out):
    mean, raw = out[..., :1], out[..., 1:]
    return mean, nn.functional.softplus(raw) + 1e-3


def main():
    torch.manual_seed(0)
    xa, ya, xb, yb, y_scale = load()
    models = [member() for _ in range(MEMBERS)]
    params, buffers = stack_module_state(models)
    skeleton = copy.deepcopy(models[0]).to("meta")

    def predict(p, b, x):
        return split(functional_call(skeleton, (p, b), (x,)))

    def nll(p, b, x, y):
        mean, var = predict(p, b, x)
        return 0.5 * (torch.log(var) + (y - mean) ** 2 / var).mean()

    step_fn = vmap(grad_and_value(nll), in_dims=(0, 0, 0, 0))
    m = {k: torch.zeros_like(v) for k, v in params.items()}
    v = {k: torch.zeros_like(w) for k, w in params.items()}
    params = {k: p.detach() for k, p in params.items()}
    for t in range(1, STEPS + 1):
        idx = torch.stack([torch.randperm(len(xa))[:64] for _ in range(MEMBERS)])
        grads, losses = step_fn(params, buffers, xa[idx], ya[idx])
        for k, g in grads.items():
            m[k] = 0.9 * m[k] + 0.1 * g
            v[k] = 0.999 * v[k] + 0.001 * g * g
            m_hat, v_hat = m[k] / (1 - 0.9**t), v[k] / (1 - 0.999**t)
            params[k] = params[k] - LR * m_hat / (v_hat.sqrt() + 1e-8)
        if t % 40 == 0:
            mean, var = vmap(predict, in_dims=(0, 0, None))(params, buffers, xb)
            mu = mean.mean(0).squeeze(-1)
            spread = (var.mean(0) + mean.var(0, unbiased=False)).sqrt().mean().item()
            rmse = (mu - yb).pow(2).mean().sqrt().item() * y_scale
            print(f"{t} nll {losses.mean().item():.4f} rmse {rmse:.2f} predicted std {spread * y_scale:.2f}")


if __name__ == "__main__":
    main()
