import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def mlp(*dims):
    layers = []
    for i, o in zip(dims, dims[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def kd_loss(student, teacher, y, T=3.0, alpha=0.7):
    soft = F.kl_div(F.log_softmax(student / T, -1), F.softmax(teacher / T, -1), reduction="batchmean") * T * T
    return alpha * soft + (1 - alpha) * F.cross_entropy(student, y)


def fit_teacher(teacher, x, y, steps=150):
    opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(steps):
        i = torch.randint(len(x), (128,))
        loss = F.cross_entropy(teacher(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()


def main():
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), gradient_accumulation_steps=2)
    set_seed(5)
    X, Y = load_digits(return_X_y=True)
    X, Y = torch.tensor(X / 16.0, dtype=torch.float32), torch.tensor(Y)
    perm = torch.randperm(len(X))
    tr, te = perm[:1400], perm[1400:]

    teacher = mlp(64, 256, 256, 10)
    fit_teacher(teacher, X[tr], Y[tr])
    teacher.eval().requires_grad_(False)
    teacher.to(accelerator.device)

    student = mlp(64, 24, 10)
    opt = torch.optim.AdamW(student.parameters(), lr=1e-2)
    train = DataLoader(TensorDataset(X[tr], Y[tr]), batch_size=32, shuffle=True)
    test = DataLoader(TensorDataset(X[te], Y[te]), batch_size=128)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 15 * (len(train) // 2))
    student, opt, train, test, sched = accelerator.prepare(student, opt, train, test, sched)

    for epoch in range(15):
        student.train()
        for x, y in train:
            with accelerator.accumulate(student):
                with torch.no_grad():
                    t = teacher(x)
                loss = kd_loss(student(x), t, y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(student.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
        student.eval()
        hits, n = 0, 0
        for x, y in test:
            with torch.no_grad():
                pred = student(x).argmax(-1)
            pred, y = accelerator.gather_for_metrics((pred, y))
            hits += (pred == y).sum().item()
            n += len(y)
        accelerator.print(f"epoch {epoch} loss {loss.item():.3f} acc {hits / n:.3f}")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(student).state_dict(), "/tmp/student.pt")


if __name__ == "__main__":
    main()
