import numpy as np
import torch

from agent import PolicyAgent
from env import CartPole

UPDATES = 30
EPISODES_PER_UPDATE = 4


def play(env, choose, on_reward=None):
    obs, done, total = env.reset(), False, 0.0
    while not done:
        obs, r, done = env.step(choose(obs))
        total += r
        if on_reward is not None:
            on_reward(r)
    return total


def main(seed=0):
    torch.manual_seed(seed)
    np.random.seed(seed)
    env, eval_env = CartPole(seed), CartPole(seed + 999)
    agent = PolicyAgent(env.obs_dim, env.n_actions)

    for u in range(1, UPDATES + 1):
        scores = []
        for _ in range(EPISODES_PER_UPDATE):
            scores.append(play(env, agent.act, on_reward=lambda r: agent.rewards.append(r)))
            agent.learn_from_episode(weight=1.0 / EPISODES_PER_UPDATE)
        norm = agent.update()
        if u % 10 == 0:
            greedy = np.mean([play(eval_env, agent.greedy) for _ in range(5)])
            print(f"update {u:3d} | sampled {np.mean(scores):6.1f} | greedy {greedy:6.1f} | grad norm {norm:.3f}")


if __name__ == "__main__":
    main()
