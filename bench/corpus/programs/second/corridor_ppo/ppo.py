"""Single-file PPO (in the manner of CleanRL) on the corridor."""
import os
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

from corridor import CorridorVec


@dataclass
class Args:
    seed: int = int(os.environ.get("SEED", "0"))
    num_envs: int = 64
    num_steps: int = 16
    num_iterations: int = 30
    update_epochs: int = 4
    num_minibatches: int = 4
    learning_rate: float = 2e-3
    anneal_lr: bool = True
    gamma: float = 0.97
    gae_lambda: float = 0.95
    clip_coef: float = 0.2
    ent_coef: float = 0.05
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, obs_dim, n_actions):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(obs_dim, 48)), nn.Tanh(),
            layer_init(nn.Linear(48, 48)), nn.Tanh(),
            layer_init(nn.Linear(48, 1), std=1.0),
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(obs_dim, 48)), nn.Tanh(),
            layer_init(nn.Linear(48, 48)), nn.Tanh(),
            layer_init(nn.Linear(48, n_actions), std=0.01),
        )

    def get_value(self, x):
        return self.critic(x).squeeze(-1)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.get_value(x)


@torch.no_grad()
def evaluate(agent, seed, episodes=200):
    """Greedy policy, fresh environments."""
    agent.eval()
    env = CorridorVec(50, seed=seed)
    obs, returns = env.reset(), []
    while len(returns) < episodes:
        action = agent.actor(torch.from_numpy(obs)).argmax(-1).numpy()
        obs, _, _, _, _, finished = env.step(action)
        returns += finished
    agent.train()
    return float(np.mean(returns))


if __name__ == "__main__":
    args = Args()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    envs = CorridorVec(args.num_envs, seed=args.seed)
    agent = Agent(envs.obs_dim, envs.n_actions)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    print(f"untrained greedy return {evaluate(agent, args.seed + 1000):.3f}")

    T, N = args.num_steps, args.num_envs
    obs = torch.zeros(T, N, envs.obs_dim)
    actions = torch.zeros(T, N, dtype=torch.long)
    logprobs, rewards, values, next_values, dones = (torch.zeros(T, N) for _ in range(5))
    terms = torch.zeros(T, N)
    batch_size = T * N
    minibatch_size = batch_size // args.num_minibatches
    recent = deque(maxlen=100)
    next_obs = torch.from_numpy(envs.reset())

    for iteration in range(1, args.num_iterations + 1):
        if args.anneal_lr:
            frac = 1.0 - (iteration - 1.0) / args.num_iterations
            optimizer.param_groups[0]["lr"] = frac * args.learning_rate

        # rollout
        for t in range(T):
            obs[t] = next_obs
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
            actions[t], logprobs[t], values[t] = action, logprob, value
            o, r, term, trunc, final_o, finished = envs.step(action.numpy())
            rewards[t] = torch.from_numpy(r)
            terms[t] = torch.from_numpy(term).float()
            dones[t] = torch.from_numpy(term | trunc).float()
            with torch.no_grad():  # value of the state really reached, also when cut by time
                next_values[t] = agent.get_value(torch.from_numpy(final_o))
            next_obs = torch.from_numpy(o)
            recent.extend(finished)

        # generalised advantage estimation
        advantages = torch.zeros_like(rewards)
        lastgaelam = torch.zeros(N)
        for t in reversed(range(T)):
            delta = rewards[t] + args.gamma * next_values[t] * (1.0 - terms[t]) - values[t]
            lastgaelam = delta + args.gamma * args.gae_lambda * (1.0 - dones[t]) * lastgaelam
            advantages[t] = lastgaelam
        returns = advantages + values

        b_obs = obs.reshape(batch_size, -1)
        b_actions, b_logprobs = actions.reshape(-1), logprobs.reshape(-1)
        b_advantages, b_returns = advantages.reshape(-1), returns.reshape(-1)

        stats = []
        for _ in range(args.update_epochs):
            perm = torch.randperm(batch_size)
            for start in range(0, batch_size, minibatch_size):
                mb = perm[start : start + minibatch_size]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
                logratio = newlogprob - b_logprobs[mb]
                ratio = logratio.exp()

                mb_adv = b_advantages[mb]
                mb_adv = (mb_adv - mb_adv.mean()) / (mb_adv.std() + 1e-8)

                pg_loss = torch.max(
                    -mb_adv * ratio,
                    -mb_adv * torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef),
                ).mean()
                v_loss = 0.5 * ((newvalue - b_returns[mb]) ** 2).mean()
                ent = entropy.mean()
                loss = pg_loss - args.ent_coef * ent + args.vf_coef * v_loss

                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()
                with torch.no_grad():
                    kl = ((ratio - 1) - logratio).mean()
                stats.append([loss.item(), pg_loss.item(), v_loss.item(), ent.item(), kl.item()])

        if iteration % 2 == 0:
            l, pg, vl, en, kl = np.mean(stats, axis=0)
            print(
                f"iter {iteration:3d} steps {iteration * batch_size:6d} loss {l:.4f} pg {pg:.4f} value_loss {vl:.4f} "
                f"entropy {en:.3f} approx_kl {kl:.4f} mean_return {np.mean(recent):.3f}"
            )

    torch.save(agent.state_dict(), "agent.pt")
    print(f"eval mean_return: {evaluate(agent, args.seed + 1000):.3f}")
