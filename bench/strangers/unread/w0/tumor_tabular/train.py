import contextlib

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RANDOM_SEED = 1234
NUMBER_OF_EPOCHS = 12


def prepare_data_loaders(batch_size=32):
    features, targets = load_breast_cancer(return_X_y=True)
    features_train, features_valid, targets_train, targets_valid = train_test_split(
        features, targets, test_size=0.25, random_state=RANDOM_SEED, stratify=targets)
    feature_scaler = StandardScaler().fit(features_train)

    def as_dataset(feature_array, target_array):
        scaled = feature_scaler.transform(feature_array).astype(np.float32)
        return TensorDataset(torch.from_numpy(scaled), torch.from_numpy(target_array.astype(np.float32)))

    training_loader = DataLoader(as_dataset(features_train, targets_train), batch_size, shuffle=True, drop_last=True)
    validation_loader = DataLoader(as_dataset(features_valid, targets_valid), batch_size=256)
    return training_loader, validation_loader


class TabularNetwork(nn.Module):
    def __init__(self, number_of_features, hidden_size=128, dropout_probability=0.5):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(number_of_features, hidden_size), nn.BatchNorm1d(hidden_size), nn.ReLU(),
            nn.Dropout(dropout_probability),
            nn.Linear(hidden_size, hidden_size), nn.BatchNorm1d(hidden_size), nn.ReLU(),
            nn.Dropout(dropout_probability),
            nn.Linear(hidden_size, 1),
        )

    def forward(self, features):
        return self.layers(features).squeeze(-1)


@contextlib.contextmanager
def evaluation_of(network):
    network.eval()
    previous_mode = network.training
    try:
        with torch.no_grad():
            yield network
    finally:
        network.train(previous_mode)


def validate(network, validation_loader):
    scores, truths = [], []
    with evaluation_of(network):
        for features, targets in validation_loader:
            scores.append(torch.sigmoid(network(features)))
            truths.append(targets)
    return roc_auc_score(torch.cat(truths).numpy(), torch.cat(scores).numpy())


def main():
    torch.manual_seed(RANDOM_SEED)
    training_loader, validation_loader = prepare_data_loaders()
    network = TabularNetwork(number_of_features=30).train()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-2)
    best_score = validate(network, validation_loader)
    print(f"before training: {best_score:.4f}")
    for epoch_number in range(NUMBER_OF_EPOCHS):
        epoch_losses = []
        for features, targets in training_loader:
            optimizer.zero_grad()
            loss = criterion(network(features), targets)
            loss.backward()
            optimizer.step()
            epoch_losses.append(loss.item())
        validation_score = validate(network, validation_loader)
        print(f"epoch {epoch_number}: loss {np.mean(epoch_losses):.4f} AUC {validation_score:.4f}")
        if validation_score > best_score:
            best_score = validation_score
            torch.save(network.state_dict(), "best_network.pt")


if __name__ == "__main__":
    main()
