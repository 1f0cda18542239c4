"""Mixture density network for an inverse problem, moved over from Flax."""
import math
from dataclasses import dataclass, field
from typing import Callable, Sequence

import torch
from torch import Tensor, nn


@dataclass(eq=False)
class Encoder(nn.Module):
    in_features: int
    features: Sequence[int] = (32, 32)
    act: Callable[[Tensor], Tensor] = torch.tanh

    def __post_init__(self):
        widths = [self.in_features, *self.features]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.act(layer(x))
        return x


class MDN(nn.Module):
    def __init__(self, encoder: Encoder, n_components: int = 5, min_scale: float = 1e-2):
        super().__init__()
        self.encoder = encoder
        self.min_scale = min_scale
        width = encoder.features[-1]
        self.logits = nn.Linear(width, n_components)
        self.loc = nn.Linear(width, n_components)
        self.log_scale = nn.Linear(width, n_components)

    def forward(self, x: Tensor) -> torch.distributions.MixtureSameFamily:
        h = self.encoder(x)
        mix = torch.distributions.Categorical(logits=self.logits(h))
        comp = torch.distributions.Normal(self.loc(h), self.log_scale(h).exp() + self.min_scale)
        return torch.distributions.MixtureSameFamily(mix, comp)


@dataclass
class TrainState:
    model: nn.Module
    lr: float = 5e-3
    step: int = 0
    history: list = field(default_factory=list)

    def __post_init__(self):
        self.tx = torch.optim.Adam(self.model.parameters(), lr=self.lr)

    def apply_gradients(self, loss: Tensor) -> None:
        self.tx.zero_grad()
        loss.backward()
        self.tx.step()
        self.step += 1
        self.history.append(loss.item())


def inverse_sine(n: int, seed: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    y = torch.rand(n, generator=g) * 2 - 1
    x = y + 0.3 * torch.sin(2 * math.pi * y) + 0.05 * torch.randn(n, generator=g)
    return x[:, None], y


def train_step(state: TrainState, x: Tensor, y: Tensor) -> None:
    nll = -state.model(x).log_prob(y).mean()
    state.apply_gradients(nll)


def main() -> None:
    torch.manual_seed(0)
    x, y = inverse_sine(2000, 0)
    xt, yt = inverse_sine(400, 1)
    model = MDN(Encoder(in_features=1, features=(32, 32)), n_components=5)
    state = TrainState(model)
    for epoch in range(8):
        for idx in torch.randperm(len(x)).split(100):
            train_step(state, x[idx], y[idx])
        with torch.no_grad():
            test = -state.model(xt).log_prob(yt).mean().item()
        print(f"step {state.step:4d}  train nll {state.history[-1]:.3f}  test nll {test:.3f}")


if __name__ == "__main__":
    main()
