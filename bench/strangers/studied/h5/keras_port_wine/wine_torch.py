# My old Keras wine notebook, ported to PyTorch.
# The callbacks are little classes with the same method names so that the rest stays the same.
import numpy as np
import torch
from torch import nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)

    def get_weights(self):
        return [w.detach().cpu().numpy() for w in self.parameters()]

    def set_weights(self, weights):
        with torch.no_grad():
            for w, value in zip(self.parameters(), weights):
                w.copy_(torch.as_tensor(value))

    def compile(self, optimizer, loss):
        self.optimizer = optimizer
        self.loss = loss

    def evaluate(self, x, y):
        self.eval()
        with torch.no_grad():
            out = self(x)
            return self.loss(out, y).item(), (out.argmax(1) == y).float().mean().item()

    def fit(self, x, y, epochs, batch_size, validation_data, callbacks=()):
        self.stop_training = False
        for cb in callbacks:
            cb.on_train_begin(self)
        for epoch in range(epochs):
            self.train()
            for idx in torch.randperm(len(x)).split(batch_size):
                self.optimizer.zero_grad()
                batch_loss = self.loss(self(x[idx]), y[idx])
                batch_loss.backward()
                self.optimizer.step()
            logs = dict(zip(("val_loss", "val_acc"), self.evaluate(*validation_data)))
            if epoch % 5 == 0:
                print(f"Epoch {epoch + 1}/{epochs} - " + " - ".join(f"{k}: {v:.4f}" for k, v in logs.items()))
            for cb in callbacks:
                cb.on_epoch_end(self, epoch, logs)
            if self.stop_training:
                break
        for cb in callbacks:
            cb.on_train_end(self)


class EarlyStopping:
    def __init__(self, monitor="val_loss", patience=10, restore_best_weights=True):
        self.monitor = monitor
        self.patience = patience
        self.restore_best_weights = restore_best_weights

    def on_train_begin(self, model):
        self.best, self.best_epoch, self.wait, self.best_weights = np.inf, -1, 0, None

    def on_epoch_end(self, model, epoch, logs):
        if logs[self.monitor] < self.best:
            self.best, self.best_epoch, self.wait = logs[self.monitor], epoch, 0
            self.best_weights = model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            model.stop_training = True

    def on_train_end(self, model):
        if self.restore_best_weights:
            print(f"Restoring model weights from epoch {self.best_epoch + 1} ({self.monitor} {self.best:.4f})")
            model.set_weights(self.best_weights)


torch.manual_seed(7)
data = load_wine()
rng = np.random.RandomState(0)
noisy = data.data + 0.9 * data.data.std(0) * rng.randn(*data.data.shape)
X_train, X_val, y_train, y_val = train_test_split(noisy, data.target, test_size=0.4, random_state=1)
scaler = StandardScaler().fit(X_train)
X_train = torch.tensor(scaler.transform(X_train), dtype=torch.float32)
X_val = torch.tensor(scaler.transform(X_val), dtype=torch.float32)
y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)

model = Model([nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)])
model.compile(torch.optim.Adam(model.parameters(), lr=3e-3), nn.CrossEntropyLoss())
model.fit(X_train, y_train, epochs=100, batch_size=16, validation_data=(X_val, y_val),
          callbacks=[EarlyStopping(patience=20)])
print("final: val_loss %.4f val_acc %.4f" % model.evaluate(X_val, y_val))
