import torch
from torch import nn

from evolve import Evolution


def reach(policy, n, seed, steps=40):
    """n point masses must brake on a random target; returns the (negative) accumulated distance."""
    gen = torch.Generator().manual_seed(seed)
    goal = (2 * torch.rand(1, 2, generator=gen) - 1).expand(n, 2)      # the same goal for the whole crowd
    pos, vel = torch.zeros(n, 2), torch.zeros(n, 2)
    score = torch.zeros(n)
    for _ in range(steps):
        force = policy(torch.cat([goal - pos, vel], 1)).clamp(-1, 1)
        vel = 0.95 * vel + 0.15 * force
        pos = pos + 0.3 * vel
        score -= (goal - pos).norm(dim=1)
    return score


def test(net, episodes=20):
    net.eval()
    with torch.no_grad():
        total = sum(reach(net, 1, 10_000 + s).item() for s in range(episodes))
    net.train()
    return total / episodes


def main():
    torch.manual_seed(88)
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    es = Evolution(net, reach, pairs=32, sigma=0.15, lr=0.05, seed=88)
    print(f"start: {test(net):.2f}")
    for g in range(1, 61):
        mean, best = es.generation(episode_seed=g)
        if g % 20 == 0:
            print(f"generation {g}: crowd mean {mean:.2f} best {best:.2f} test {test(net):.2f}")


if __name__ == "__main__":
    main()
