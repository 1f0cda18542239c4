"""REINFORCE on a balancing toy: the loss is no measure of progress, the reward is."""

import torch
from torch import nn

torch.manual_seed(23)
policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def episode():
    """Keep a drifting point near the middle, for at most forty steps."""
    place, speed = 0.2 * torch.randn(1).item(), 0.0
    log_probs, rewards = [], []
    for _ in range(40):
        state = torch.tensor([place, speed])
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        speed += (0.1 if action.item() == 1 else -0.1) + 0.1 * place
        place += 0.3 * speed
        rewards.append(1.0)
        if abs(place) > 1.0:
            break
    return log_probs, rewards


baseline = 0.0
for update in range(120):
    log_probs, rewards = episode()
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    baseline = 0.9 * baseline + 0.1 * returns.mean().item()
    loss = -(torch.stack(log_probs) * (returns - baseline)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 10 == 0:
        print(f"update {update} loss {loss.item()!r} reward {len(rewards)}")
