import torch

from policy import CopyPolicy
from sampler import complete

K, BATCH, LENGTH, VOCAB = 6, 64, 2, 6


def verify(prompts, tokens):
    """All or nothing: the completion must be the prompt backwards."""
    return (tokens == prompts.flip(1)).all(1).float()


def main(steps=400):
    torch.manual_seed(0)
    policy = CopyPolicy(VOCAB)
    opt = torch.optim.Adam(policy.parameters(), lr=4e-3)
    window = []
    for step in range(1, steps + 1):
        prompts = torch.randint(VOCAB, (BATCH, LENGTH)).repeat_interleave(K, 0)
        tokens, logp = complete(policy, prompts, LENGTH)
        r = verify(prompts, tokens).view(BATCH, K)
        baseline = (r.sum(1, keepdim=True) - r) / (K - 1)
        adv = (r - baseline).flatten()
        loss = -(adv * logp).mean()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        window.append(r.mean().item())
        if step % 80 == 0:
            flat = (r.std(1) == 0).float().mean().item()
            print(f"step {step} reward {sum(window) / len(window):.3f} groups without spread {flat:.2f} loss {loss.item():+.4f}")
            window.clear()
    policy.eval()
    with torch.no_grad():
        prompts = torch.cartesian_prod(*[torch.arange(VOCAB)] * LENGTH)
        tokens, _ = complete(policy, prompts, LENGTH, greedy=True)
    print(f"greedy accuracy over all prompts {verify(prompts, tokens).mean():.3f}")


if __name__ == "__main__":
    main()
