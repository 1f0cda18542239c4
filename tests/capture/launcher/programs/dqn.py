"""Deep Q-learning with replay and a target network: the loss rises as the values do."""

import copy
import random

import torch
from torch import nn

torch.manual_seed(33)
random.seed(33)
online = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(online)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
memory, place = [], 2
steps = 0
for episode in range(60):
    place, total = 2, 0.0
    for _ in range(12):
        state = nn.functional.one_hot(torch.tensor(place), 5).float()
        with torch.no_grad():
            greedy = online(state).argmax().item()
        action = random.randrange(2) if random.random() < max(0.1, 1 - episode / 30) else greedy
        place = max(0, min(4, place + (1 if action else -1)))
        reward = 1.0 if place == 4 else 0.0
        total += reward
        memory.append(
            (state, action, reward, nn.functional.one_hot(torch.tensor(place), 5).float())
        )
        if len(memory) < 32:
            continue
        states, actions, rewards, following = zip(*random.sample(memory, 32), strict=True)
        value = online(torch.stack(states)).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
        with torch.no_grad():
            best = target(torch.stack(following)).max(1).values
        loss = nn.functional.smooth_l1_loss(value, torch.tensor(rewards) + 0.9 * best)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 50 == 0:
            target.load_state_dict(online.state_dict())
    if episode % 10 == 9:
        print(f"episode {episode} loss {loss.item()!r} reward {total}")
