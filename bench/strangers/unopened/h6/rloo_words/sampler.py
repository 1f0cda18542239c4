import torch


def complete(policy, prompts, length, greedy=False):
    """Returns tokens and their summed log-probability (differentiable)."""
    h, tok = policy.read(prompts), torch.zeros(len(prompts), dtype=torch.long)
    tokens, logp = [], 0.0
    for _ in range(length):
        dist, h = policy.next(tok, h)
        tok = dist.probs.argmax(-1) if greedy else dist.sample()
        logp = logp + dist.log_prob(tok)
        tokens.append(tok)
    return torch.stack(tokens, 1), logp
