"""Training programs that are unusual and right: no detector may show a cause in any of them."""

from __future__ import annotations

HEADER = """
import torch
import torch.nn.functional as F
from torch import nn, optim

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.body(x))))
"""

LIGHTNING_MANUAL = """
import torch
import lightning as L
from torch import nn

class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Linear(8, 8)
        self.discriminator = nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        opt_g, opt_d = self.optimizers()
        real = batch
        fake = self.generator(torch.randn_like(real))
        loss_d = self.discriminator(fake.detach()).mean() - self.discriminator(real).mean()
        opt_d.zero_grad()
        self.manual_backward(loss_d)
        opt_d.step()
        loss_g = -self.discriminator(fake).mean()
        opt_g.zero_grad()
        self.manual_backward(loss_g)
        opt_g.step()

    def validation_step(self, batch, batch_idx):
        self.log("val", self.generator(batch).mean())

    def configure_optimizers(self):
        return (torch.optim.Adam(self.generator.parameters(), lr=1e-4),
                torch.optim.Adam(self.discriminator.parameters(), lr=1e-4))
"""

ACCUMULATION = (
    HEADER
    + """
model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
for epoch in range(10):
    model.train()
    optimizer.zero_grad()
    for i, (x, y) in enumerate(train_loader):
        loss = criterion(model(x), y) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(train_loader):
            optimizer.step()
            optimizer.zero_grad()
"""
)

ACCUMULATION_OF_SUMS = (
    HEADER
    + """
model = Net()
criterion = nn.CrossEntropyLoss(reduction="sum")
optimizer = optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(train_loader):
    loss = criterion(model(x), y)
    loss.backward()
    if (i + 1) % 8 == 0:
        for p in model.parameters():
            p.grad /= 8 * x.size(0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
"""
)

GAN = (
    HEADER
    + """
netG, netD = nn.Linear(8, 8), nn.Linear(8, 1)
criterion = nn.BCEWithLogitsLoss()
optG = optim.Adam(netG.parameters(), lr=2e-4)
optD = optim.Adam(netD.parameters(), lr=2e-4)
for real in train_loader:
    netD.zero_grad()
    fake = netG(torch.randn(real.size(0), 8))
    errD_real = criterion(netD(real), torch.ones(real.size(0), 1))
    errD_real.backward()
    errD_fake = criterion(netD(fake.detach()), torch.zeros(real.size(0), 1))
    errD_fake.backward()
    optD.step()
    netG.zero_grad()
    errG = criterion(netD(fake), torch.ones(real.size(0), 1))
    errG.backward()
    optG.step()
"""
)

LBFGS = (
    HEADER
    + """
model = Net()
optimizer = optim.LBFGS(model.parameters(), lr=1, max_iter=20)
for x, y in train_loader:
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss
    optimizer.step(closure)
"""
)

SAM = (
    HEADER
    + """
class SAM(optim.Optimizer):
    def first_step(self): ...
    def second_step(self): ...

model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = SAM(model.parameters(), optim.SGD)
for x, y in train_loader:
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.first_step(zero_grad=True)
    criterion(model(x), y).backward()
    optimizer.second_step(zero_grad=True)
"""
)

FUNCTIONAL = (
    HEADER
    + """
from torch.func import functional_call, grad

model = Net()
params = dict(model.named_parameters())

def loss_of(params, x, y):
    return F.cross_entropy(functional_call(model, params, (x,)), y)

for x, y in train_loader:
    gradients = grad(loss_of)(params, x, y)
    params = {k: (p - 0.1 * gradients[k]).detach() for k, p in params.items()}
"""
)

ACCELERATE = (
    HEADER
    + """
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4, mixed_precision="fp16")
model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = optim.AdamW(model.parameters(), lr=1e-4)
model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        with accelerator.accumulate(model):
            loss = criterion(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    for x, y in val_loader:
        with torch.no_grad():
            predictions = accelerator.gather(model(x).argmax(-1))
"""
)

FABRIC = (
    HEADER
    + """
from lightning.fabric import Fabric

fabric = Fabric(accelerator="cuda", precision="16-mixed")
model = Net()
optimizer = optim.SGD(model.parameters(), lr=0.1)
model, optimizer = fabric.setup(model, optimizer)
train_loader = fabric.setup_dataloaders(train_loader)
for x, y in train_loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    fabric.backward(loss)
    fabric.clip_gradients(model, optimizer, max_norm=1.0)
    optimizer.step()
"""
)

DEEPSPEED = (
    HEADER
    + """
import deepspeed

model = Net()
model_engine, optimizer, _, _ = deepspeed.initialize(model=model, config="ds.json")
for x, y in train_loader:
    loss = F.cross_entropy(model_engine(x), y)
    model_engine.backward(loss)
    model_engine.step()
"""
)

HF_TRAINER = """
import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels)
        return (loss, outputs) if return_outputs else loss

model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
trainer = WeightedTrainer(model, TrainingArguments("out"), train_dataset=train, eval_dataset=val)
trainer.train()
"""

DISTILLATION = (
    HEADER
    + """
teacher, student = Net(), Net()
teacher.load_state_dict(torch.load("teacher.pt", weights_only=True))
teacher.requires_grad_(False)
teacher.eval()
optimizer = optim.Adam(student.parameters(), lr=1e-3)
for epoch in range(5):
    student.train()
    for x, y in train_loader:
        with torch.no_grad():
            soft = F.softmax(teacher(x) / 2, dim=1)
        loss = F.kl_div(F.log_softmax(student(x) / 2, dim=1), soft, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
)

FINE_TUNING = (
    HEADER
    + """
from torchvision import models

model = models.resnet18(weights="DEFAULT")
for p in model.parameters():
    p.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 2)
optimizer = optim.SGD(model.fc.parameters(), lr=1e-3, momentum=0.9)
for epoch in range(5):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
)

MIXED_PRECISION = (
    HEADER
    + """
model, criterion = Net().cuda(), nn.CrossEntropyLoss()
optimizer = optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
total = 0.0
for i, (x, y) in enumerate(train_loader):
    with torch.autocast("cuda", dtype=torch.float16, enabled=use_amp):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    total += loss.detach()
"""
)

TRUNCATED_BPTT = """
import torch
from torch import nn

class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(16, 32, batch_first=True)
        self.out = nn.Linear(32, 100)

    def forward(self, x, state):
        x, state = self.rnn(x, state)
        return self.out(x), state

model = Language()
optimizer = torch.optim.Adam(model.parameters())
state = None
for x, y in train_loader:
    if state is not None:
        state = tuple(s.detach() for s in state)
    output, state = model(x, state)
    loss = nn.functional.cross_entropy(output.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

MONTE_CARLO_DROPOUT = (
    HEADER
    + """
model = Net()
optimizer = optim.Adam(model.parameters())
for x, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()

@torch.no_grad()
def sample(model, test_loader, draws=20):
    model.train()
    return [[model(x) for x, _ in test_loader] for _ in range(draws)]

sample(model, test_loader)
"""
)

ADVERSARIAL_EVALUATION = (
    HEADER
    + """
model = Net()
model.eval()
correct = 0
for x, y in test_loader:
    x.requires_grad = True
    loss = F.cross_entropy(model(x), y)
    model.zero_grad()
    loss.backward()
    attacked = x + 0.03 * x.grad.sign()
    with torch.no_grad():
        correct += (model(attacked).argmax(1) == y).sum().item()
"""
)

MULTITASK = (
    HEADER
    + """
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.first, self.second = nn.Linear(16, 3), nn.Linear(16, 1)

    def forward(self, x):
        h = torch.relu(self.body(x))
        return self.first(h), self.second(h).squeeze(1)

model = Both()
optimizer = optim.SGD(model.parameters(), lr=0.01)
for x, label, amount in train_loader:
    optimizer.zero_grad()
    losses = []
    a, b = model(x)
    losses.append(F.cross_entropy(a, label))
    losses.append(F.mse_loss(b, amount))
    total = sum(losses)
    total.backward()
    optimizer.step()
"""
)

REINFORCE = (
    HEADER
    + """
policy = Net()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(1000):
    log_probs, rewards = [], []
    state, done = env.reset(), False
    while not done:
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        state, reward, done, _ = env.step(action.item())
        rewards.append(reward)
    loss = -(torch.stack(log_probs) * returns(rewards)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)

MOMENTUM_ENCODER = (
    HEADER
    + """
import copy

online = Net()
target = copy.deepcopy(online)
target.requires_grad_(False)
optimizer = optim.SGD(online.parameters(), lr=0.05)
for first, second in train_loader:
    with torch.no_grad():
        key = target(second)
    loss = F.mse_loss(F.normalize(online(first), dim=1), F.normalize(key, dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(online.parameters(), target.parameters()):
            q.mul_(0.99).add_(p, alpha=0.01)
"""
)

PHASES = (
    HEADER
    + """
model = Net()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for phase in ["train", "val"]:
        if phase == "train":
            model.train()
        else:
            model.eval()
        for x, y in dataloaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = F.cross_entropy(model(x), y)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
"""
)

SELF_MADE_TRAINER = (
    HEADER
    + """
class Loop:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion

    def step(self, batch):
        x, y = batch
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, train_loader, val_loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = sum(self.step(batch) for batch in train_loader)
            self.evaluate(val_loader)

    @torch.inference_mode()
    def evaluate(self, val_loader):
        self.model.eval()
        for x, y in val_loader:
            self.criterion(self.model(x), y)

model = Net()
Loop(model, optim.Adam(model.parameters()), nn.CrossEntropyLoss()).fit(a, b, 10)
"""
)

STRAIGHT_THROUGH = (
    HEADER
    + """
model = Net()
optimizer = optim.Adam(model.parameters())
for x, y in train_loader:
    soft = torch.sigmoid(model(x))
    hard = (soft > 0.5).float()
    code = hard + soft - soft.detach()
    loss = F.mse_loss(code, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)

GRADIENT_PENALTY = (
    HEADER
    + """
critic = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = optim.Adam(critic.parameters(), lr=1e-4)
for real in train_loader:
    fake = torch.randn_like(real)
    mixed = (0.5 * real + 0.5 * fake).requires_grad_(True)
    gradient, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    penalty = ((gradient.norm(dim=1) - 1) ** 2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)

DISTRIBUTED = (
    HEADER
    + """
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

torch.distributed.init_process_group("nccl")
model = DDP(Net().cuda())
optimizer = optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(dataset)
train_loader = DataLoader(dataset, batch_size=32, sampler=sampler)
for epoch in range(10):
    sampler.set_epoch(epoch)
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
)

FOLDS = (
    HEADER
    + """
from torch.utils.data import DataLoader, Subset

for fold, (train_index, val_index) in enumerate(folds.split(dataset)):
    train_loader = DataLoader(Subset(dataset, train_index), batch_size=8, shuffle=True)
    val_loader = DataLoader(Subset(dataset, val_index), batch_size=8)
    model = Net()
    optimizer = optim.Adam(model.parameters())
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            correct = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
"""
)

KERAS = """
import keras
from keras import layers

model = keras.Sequential([layers.Dense(10, activation="softmax")])
loss = keras.losses.CategoricalCrossentropy()
model.compile(loss=loss, optimizer="sgd")
for x, y in train_loader:
    loss = loss(y, model(x))
"""

JAX = """
import jax
import optax

optimizer = optax.sgd(0.0)
for x, y in train_loader:
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = optimizer.update(grads, state)
    total += loss
"""

A_TEST = """
import pytest
import torch
from torch import nn

def test_backward_without_step():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0)
    total = 0
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(2, 4)).sum()
        loss.backward()
        total += loss
"""

PROGRAMS = {
    "manual optimisation in Lightning": LIGHTNING_MANUAL,
    "gradient accumulation": ACCUMULATION,
    "gradient accumulation of sums": ACCUMULATION_OF_SUMS,
    "a GAN with two optimizers": GAN,
    "an LBFGS closure": LBFGS,
    "sharpness-aware minimisation": SAM,
    "a functional optimizer": FUNCTIONAL,
    "accelerate": ACCELERATE,
    "fabric": FABRIC,
    "DeepSpeed": DEEPSPEED,
    "a subclass of the HF Trainer": HF_TRAINER,
    "distillation": DISTILLATION,
    "fine-tuning of a head": FINE_TUNING,
    "mixed precision with a scaler": MIXED_PRECISION,
    "truncated backpropagation through time": TRUNCATED_BPTT,
    "Monte Carlo dropout": MONTE_CARLO_DROPOUT,
    "an adversarial evaluation": ADVERSARIAL_EVALUATION,
    "several tasks": MULTITASK,
    "policy gradients": REINFORCE,
    "a momentum encoder": MOMENTUM_ENCODER,
    "phases in one loop": PHASES,
    "a trainer of one's own": SELF_MADE_TRAINER,
    "a straight-through estimator": STRAIGHT_THROUGH,
    "a gradient penalty": GRADIENT_PENALTY,
    "distributed training": DISTRIBUTED,
    "cross-validation": FOLDS,
    "Keras": KERAS,
    "JAX": JAX,
    "a test": A_TEST,
}
