from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from torch_estimators import TorchMLPClassifier

X, y = make_classification(1200, 16, n_informative=8, n_classes=3, n_clusters_per_class=1, class_sep=1.3,
                           random_state=3)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)

for C in (1.0, 3.0):
    for model in (LogisticRegression(C=C), TorchMLPClassifier(C=C)):
        pipe = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
        name = type(model).__name__
        print(f"C={C}: {name:20s} accuracy {pipe.score(X_test, y_test):.3f} "
              f"log loss {log_loss(y_test, pipe.predict_proba(X_test)):.3f}")
    print("   loss curve:", " ".join(f"{v:.3f}" for v in pipe[-1].loss_curve_[::3]))
