import torch
import torch.nn.functional as F


def groups(loader, k):
    """Yield lists of up to k batches; the last list may be shorter."""
    buf = []
    for b in loader:
        buf.append(b)
        if len(buf) == k:
            yield buf
            buf = []
    if buf:
        yield buf


def summed_nll(model, tokens, pad):
    logp = model(tokens[:, :-1])
    return F.nll_loss(logp.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=pad, reduction="sum")


def train_epoch(model, loader, optimizer, scheduler, accum, pad, max_norm=1.0):
    """The micro-batches hold different numbers of real tokens, hence the sum over all of them is
    divided by the token count of the whole group instead of averaging averages."""
    model.train()
    nll, tokens_seen = 0.0, 0
    for group in groups(loader, accum):
        n_tokens = sum((t[:, 1:] != pad).sum() for t in group)
        for tokens in group:
            loss = summed_nll(model, tokens, pad)
            (loss / n_tokens).backward()
            nll += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        tokens_seen += n_tokens.item()
    return nll / tokens_seen


@torch.no_grad()
def evaluate(model, loader, pad):
    model.eval()
    nll = sum(summed_nll(model, t, pad).item() for t in loader)
    return nll / sum((t[:, 1:] != pad).sum().item() for t in loader)
