import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

K, LR, MOMENTUM, STEPS = 8, 0.05, 0.9, 600


def make():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def target(x):
    return torch.sin(3 * x) + 0.3 * x


torch.manual_seed(0)
members = [make() for _ in range(K)]
skeleton = make().to("meta")
params, buffers = stack_module_state(members)
params = {k: v.detach() for k, v in params.items()}
velocity = {k: torch.zeros_like(v) for k, v in params.items()}

x_train = torch.cat([torch.rand(60, 1) * 1.5 - 2, torch.rand(60, 1) * 1.5 + 0.5])
y_train = target(x_train) + 0.05 * torch.randn_like(x_train)
x_in, x_gap = torch.linspace(0.6, 1.9, 50)[:, None], torch.linspace(-0.3, 0.3, 50)[:, None]


def loss_fn(p, b, x, y):
    return (functional_call(skeleton, (p, b), (x,)) - y).square().mean()


step_fn = vmap(grad_and_value(loss_fn), in_dims=(0, 0, 0, 0))
predict = vmap(lambda p, b, x: functional_call(skeleton, (p, b), (x,)), in_dims=(0, 0, None))

for step in range(STEPS):
    pick = torch.randint(len(x_train), (K, 32))
    grads, losses = step_fn(params, buffers, x_train[pick], y_train[pick])
    velocity = {k: MOMENTUM * velocity[k] + grads[k] for k in params}
    params = {k: params[k] - LR * velocity[k] for k in params}
    if step % 150 == 149:
        inside, gap = predict(params, buffers, x_in), predict(params, buffers, x_gap)
        rmse = (inside.mean(0) - target(x_in)).square().mean().sqrt()
        print(f"{step + 1}: mean loss {losses.mean():.4f} rmse {rmse:.4f} "
              f"spread inside {inside.std(0).mean():.4f} gap {gap.std(0).mean():.4f}")
