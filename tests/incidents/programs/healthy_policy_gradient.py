"""REINFORCE on a small cart and pole: returns are noisy, the policy loss means nothing."""

from math import cos, sin
from pathlib import Path

import torch
from training import mlp, seed, write_jsonl

EPISODES, LONGEST = 240, 150


def push(state: list[float], force: float) -> list[float]:
    """Move a cart with a pole on it by one fiftieth of a second."""
    x, speed, angle, spin = state
    pull = (force + 0.05 * spin**2 * sin(angle)) / 1.1
    angular = (9.8 * sin(angle) - cos(angle) * pull) / (0.5 * (4 / 3 - 0.1 * cos(angle) ** 2 / 1.1))
    linear = pull - 0.05 * angular * cos(angle) / 1.1
    change = (speed, linear, spin, angular)
    return [v + 0.02 * c for v, c in zip((x, speed, angle, spin), change, strict=True)]


def make(folder: Path) -> None:
    seed(7)
    policy = mlp(4, 24, 2, activation=torch.nn.Tanh)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    rows = []
    for episode in range(1, EPISODES + 1):
        state = (torch.rand(4) * 0.1 - 0.05).tolist()
        chosen, entropies = [], []
        while len(chosen) < LONGEST and abs(state[0]) < 2.4 and abs(state[2]) < 0.21:
            choice = torch.distributions.Categorical(logits=policy(torch.tensor(state)))
            action = choice.sample()
            chosen.append(choice.log_prob(action))
            entropies.append(choice.entropy())
            state = push(state, 10.0 if action else -10.0)
        returns = torch.tensor([(1 - 0.98 ** (len(chosen) - t)) / 0.02 for t in range(len(chosen))])
        advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
        entropy = torch.stack(entropies).mean()
        policy_loss = -(torch.stack(chosen) * advantage).mean()
        optimizer.zero_grad()
        (policy_loss - 0.01 * entropy).backward()
        optimizer.step()
        rows.append(
            {
                "episode": episode,
                "episode_reward": float(len(chosen)),
                "policy_loss": round(policy_loss.item(), 5),
                "entropy": round(entropy.item(), 5),
            }
        )
    write_jsonl(folder / "progress.jsonl", rows)
