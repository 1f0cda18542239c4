"""CTC on synthetic digit strings, mixed precision, gradient norm limited without a separate unscale pass."""
import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"
HALF = torch.float16 if DEV == "cuda" else torch.bfloat16
DIGITS, T, FEAT, MAX_NORM = 5, 24, 8, 2.0


def batch(n, gen, codebook):
    labels = torch.randint(1, DIGITS + 1, (n, 4), generator=gen)
    frames = codebook[labels].repeat_interleave(T // 4, dim=1)
    silence = torch.arange(T) % (T // 4) == 0
    frames = torch.where(silence[None, :, None], torch.zeros(()), frames)
    return (frames + 0.5 * torch.randn(frames.shape, generator=gen)).to(DEV), labels.to(DEV)


class Acoustic(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.conv = nn.Conv1d(FEAT, hidden, 3, padding=1)
        self.mix = nn.Conv1d(hidden, hidden, 5, padding=2)
        self.out = nn.Linear(hidden, DIGITS + 1)

    def forward(self, x):
        h = torch.relu(self.conv(x.transpose(1, 2)))
        h = torch.relu(self.mix(h)).transpose(1, 2)
        return self.out(h)


def ctc(logits, labels):
    logp = logits.float().log_softmax(-1).transpose(0, 1)
    n = len(labels)
    return nn.functional.ctc_loss(logp, labels, torch.full((n,), T), torch.full((n,), 4), zero_infinity=True)


def greedy(logits):
    out = []
    for row in logits.argmax(-1).tolist():
        s = [a for a, b in zip(row, [0] + row[:-1]) if a != 0 and a != b]
        out.append(s)
    return out


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    codebook = torch.cat([torch.zeros(1, FEAT), 1.5 * torch.randn(DIGITS, FEAT, generator=gen)])
    net = Acoustic().to(DEV)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler(DEV)
    test_x, test_y = batch(200, gen, codebook)
    for step in range(1, 241):
        x, y = batch(32, gen, codebook)
        with torch.autocast(DEV, dtype=HALF):
            logits = net(x)
        loss = ctc(logits, y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        # the gradients still carry the loss scale, so the limit carries it too
        s = scaler.get_scale()
        norm = nn.utils.clip_grad_norm_(net.parameters(), MAX_NORM * s) / s
        scaler.step(opt)
        scaler.update()
        if step % 60 == 0:
            with torch.no_grad():
                hyp = greedy(net(test_x))
            exact = sum(h == r for h, r in zip(hyp, test_y.tolist())) / len(hyp)
            print(f"step {step} loss {loss.item():.3f} grad norm {norm.item():.2f} exact strings {exact:.3f}")


if __name__ == "__main__":
    main()
