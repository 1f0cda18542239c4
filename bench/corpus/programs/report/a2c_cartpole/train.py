# Advantage actor-critic (synchronous, n-step with GAE) on CartPole.
import csv
import os
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

from cartpole import VecCartPole


@dataclass
class Args:
    seed: int = int(os.environ.get("SEED", "0"))
    num_envs: int = 64
    n_steps: int = 32
    updates: int = 140
    gamma: float = 0.99
    lam: float = 0.95
    actor_lr: float = 4e-3
    critic_lr: float = 1e-2
    hidden: int = 64
    ent_coef: float = 0.005
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    reward_scale: float = 0.1
    log_every: int = 14
    eval_episodes: int = 32


def layer(n_in, n_out, gain=np.sqrt(2)):
    lin = nn.Linear(n_in, n_out)
    nn.init.orthogonal_(lin.weight, gain)
    nn.init.zeros_(lin.bias)
    return lin


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden):
        super().__init__()
        self.actor = nn.Sequential(layer(obs_dim, hidden), nn.Tanh(), layer(hidden, n_actions, 0.01))
        self.critic = nn.Sequential(
            layer(obs_dim, hidden), nn.Tanh(), layer(hidden, hidden), nn.Tanh(), layer(hidden, 1, 1.0)
        )
        # rough ranges of (x, x_dot, theta, theta_dot)
        self.register_buffer("obs_scale", torch.tensor([2.4, 2.0, 0.21, 2.0]))

    def forward(self, obs):
        obs = obs / self.obs_scale
        return self.actor(obs), self.critic(obs).squeeze(-1)

    def value(self, obs):
        return self.critic(obs / self.obs_scale).squeeze(-1)


@torch.no_grad()
def gae(rewards, values, next_values, dones, gamma, lam):
    """next_values[t] is V of the state reached at t (0 if it was terminal)."""
    adv = torch.zeros_like(rewards)
    running = torch.zeros(rewards.shape[1])
    for t in reversed(range(rewards.shape[0])):
        delta = rewards[t] + gamma * next_values[t] - values[t]
        running = delta + gamma * lam * (1.0 - dones[t]) * running
        adv[t] = running
    return adv


@torch.no_grad()
def evaluate(agent, episodes, seed):
    agent.eval()
    env = VecCartPole(episodes, seed=seed)
    obs = env.reset()
    alive = np.ones(episodes, dtype=bool)
    returns = np.zeros(episodes)
    while alive.any():
        logits, _ = agent(torch.from_numpy(obs))
        obs, r, term, trunc, _ = env.step(logits.argmax(-1).numpy())
        returns += r * alive
        alive &= ~(term | trunc)
    agent.train()
    return returns.mean()


def main():
    args = Args()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    env = VecCartPole(args.num_envs, seed=args.seed)
    agent = ActorCritic(env.obs_dim, env.n_actions, args.hidden)
    opt = torch.optim.Adam(
        [
            {"params": agent.actor.parameters(), "lr": args.actor_lr},
            {"params": agent.critic.parameters(), "lr": args.critic_lr},
        ],
        eps=1e-5,
    )
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda u: 1.0 - 0.95 * u / args.updates)

    print(f"untrained greedy return: {evaluate(agent, args.eval_episodes, seed=9999):.1f}")

    log_file = open("progress.csv", "w", newline="")
    writer = csv.writer(log_file)
    writer.writerow(["update", "mean_return", "pg_loss", "v_loss", "entropy"])

    obs = env.reset()
    ep_return = np.zeros(args.num_envs)
    finished = deque(maxlen=50)
    shape = (args.n_steps, args.num_envs)
    window = []

    for update in range(1, args.updates + 1):
        b_obs = torch.zeros(shape + (env.obs_dim,))
        b_last = torch.zeros(shape + (env.obs_dim,))
        b_act = torch.zeros(shape, dtype=torch.long)
        b_rew, b_done, b_term = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)

        # ---- rollout
        for t in range(args.n_steps):
            o = torch.from_numpy(obs)
            with torch.no_grad():
                probs = torch.softmax(agent.actor(o / agent.obs_scale), dim=-1)
                act = torch.multinomial(probs, 1).squeeze(-1)
            obs, rew, term, trunc, last = env.step(act.numpy())
            done = term | trunc

            b_obs[t], b_act[t] = o, act
            b_last[t] = torch.from_numpy(last)
            b_rew[t] = torch.from_numpy(rew) * args.reward_scale
            b_done[t], b_term[t] = torch.from_numpy(done), torch.from_numpy(term)

            ep_return += rew
            if done.any():
                finished.extend(ep_return[done])
                ep_return[done] = 0.0

        # ---- one gradient step on the whole rollout
        logits, values = agent(b_obs)
        with torch.no_grad():
            # bootstrap through time-outs, not through failures
            next_values = agent.value(b_last) * (1.0 - b_term)
        adv = gae(b_rew, values.detach(), next_values, b_done, args.gamma, args.lam)
        returns = adv + values.detach()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)

        dist = Categorical(logits=logits, validate_args=False)
        pg_loss = -(dist.log_prob(b_act) * adv).mean()
        v_loss = 0.5 * (returns - values).pow(2).mean()
        entropy = dist.entropy().mean()
        loss = pg_loss + args.vf_coef * v_loss - args.ent_coef * entropy

        opt.zero_grad()
        loss.backward()
        # clipped separately, a bad value estimate should not shrink the policy's step
        nn.utils.clip_grad_norm_(agent.actor.parameters(), args.max_grad_norm)
        nn.utils.clip_grad_norm_(agent.critic.parameters(), args.max_grad_norm)
        opt.step()
        sched.step()

        window.append((pg_loss.item(), v_loss.item(), entropy.item()))
        if update % args.log_every == 0:
            pg, vl, ent = np.mean(window, axis=0)
            window.clear()
            mean_ret = np.mean(finished) if finished else float("nan")
            writer.writerow([update, mean_ret, pg, vl, ent])
            print(
                f"update {update:4d} | mean return {mean_ret:6.1f} | policy loss {pg:+.4f} "
                f"| value loss {vl:.4f} | entropy {ent:.3f}"
            )

    log_file.close()
    torch.save({"model": agent.state_dict(), "optimizer": opt.state_dict(), "update": update}, "agent.pt")
    print(f"final eval return: {evaluate(agent, args.eval_episodes, seed=9999):.1f}")


if __name__ == "__main__":
    main()
