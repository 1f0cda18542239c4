"""Actor and critic, two optimizers, an advantage that is detached on purpose."""

import torch
from torch import nn

torch.manual_seed(34)
actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
wheel = torch.randn(4, 3)
for update in range(250):
    state = torch.randn(32, 4)
    choice = torch.distributions.Categorical(logits=actor(state))
    action = choice.sample()
    reward = (state @ wheel).gather(1, action[:, None]).squeeze(1)
    value = critic(state).squeeze(1)
    advantage = (reward - value).detach()
    actor_loss = -(choice.log_prob(action) * advantage).mean() - 0.01 * choice.entropy().mean()
    critic_loss = nn.functional.mse_loss(value, reward)
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    if update % 25 == 0:
        print(f"update {update} actor {actor_loss.item()!r} reward {reward.mean().item()!r}")
