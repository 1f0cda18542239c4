import torch

from a2c import ActorCritic, collect, update
from env import GridBatch


@torch.no_grad()
def play(agent, seed, steps=60):
    """Average reward per step of the greedy policy on a fresh set of grids."""
    env = GridBatch(n=64, seed=seed)
    total = 0.0
    for _ in range(steps):
        act = agent.policy(env.observe()).probs.argmax(-1)
        _, rew, _ = env.step(act)
        total += rew.mean().item()
    return total / steps


if __name__ == "__main__":
    torch.manual_seed(0)
    env = GridBatch(n=16, seed=0)
    agent = ActorCritic()
    optim = torch.optim.Adam(agent.parameters(), lr=3e-3)
    for it in range(1, 151):
        stats = update(agent, optim, collect(env, agent, steps=20))
        if it % 50 == 0:
            print(it, {k: round(v, 4) for k, v in stats.items()}, "greedy", round(play(agent, seed=1000), 4))
