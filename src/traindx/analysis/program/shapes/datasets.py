"""What is known about public datasets: the shape of a sample and the number of classes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from traindx.analysis.program.project import Project
from traindx.analysis.program.shapes.sizes import Dim
from traindx.analysis.program.syntax import Module, argument, literal

Options = Callable[[str, int], object]  # an argument, by name or position


@dataclass(frozen=True, slots=True)
class DatasetSample:
    """The shape of one sample, and where it is known from, in words."""

    sizes: tuple[Dim, ...]
    origin: str


SHAPES: dict[str, tuple[int, ...] | None] = {
    "MNIST": (1, 28, 28),
    "FashionMNIST": (1, 28, 28),
    "KMNIST": (1, 28, 28),
    "QMNIST": (1, 28, 28),
    "EMNIST": (1, 28, 28),
    "USPS": (1, 16, 16),
    "CIFAR10": (3, 32, 32),
    "CIFAR100": (3, 32, 32),
    "SVHN": (3, 32, 32),
    "STL10": (3, 96, 96),
    "ImageNet": None,  # as large as the transform makes it
    "ImageFolder": None,
    "Food101": None,
    "Flowers102": None,
    "OxfordIIITPet": None,
}
CLASSES = {
    "MNIST": 10, "FashionMNIST": 10, "KMNIST": 10, "QMNIST": 10, "USPS": 10, "CIFAR10": 10,
    "CIFAR100": 100, "SVHN": 10, "STL10": 10, "ImageNet": 1000, "Food101": 101, "Flowers102": 102,
    "OxfordIIITPet": 37,
}  # fmt: skip
# datasets of the Hugging Face hub whose column `label` has these classes
HUB_CLASSES = {
    "ag_news": 4, "fancyzhx/ag_news": 4, "imdb": 2, "stanfordnlp/imdb": 2, "emotion": 6,
    "dair-ai/emotion": 6, "yelp_review_full": 5, "Yelp/yelp_review_full": 5, "dbpedia_14": 14,
    "fancyzhx/dbpedia_14": 14, "banking77": 77, "PolyAI/banking77": 77, "rotten_tomatoes": 2,
    "SetFit/20_newsgroups": 20, "yelp_polarity": 2, "amazon_polarity": 2, "SetFit/sst5": 5,
}  # fmt: skip
# transforms that keep the shape of an image tensor
KEEPING = frozenset(
    {"ToTensor", "Normalize", "RandomHorizontalFlip", "RandomVerticalFlip", "ColorJitter",
     "RandomRotation", "RandomAffine", "RandomErasing", "ConvertImageDtype", "ToImage", "ToDtype",
     "AutoAugment", "RandAugment", "TrivialAugmentWide", "GaussianBlur", "RandomPerspective"}
)  # fmt: skip
SQUARE = frozenset({"CenterCrop", "RandomCrop", "RandomResizedCrop"})


def dataset_calls(project: Project) -> list[tuple[Module, ast.Call, str]]:
    """Return the calls that make a dataset we know."""
    found = []
    for module in project.modules:
        for call, name in module.calls():
            last = name.rsplit(".", 1)[-1]
            if last in SHAPES and ("dataset" in name or name.startswith("torchvision")):
                found.append((module, call, last))
    return found


def sample_shape(project: Project) -> DatasetSample | None:
    """Return the shape of a sample, where the source uses one dataset in one way we know."""
    shapes = {_shape_of(project, m, c, n): n for m, c, n in dataset_calls(project)}
    if len(shapes) != 1:
        return None
    ((shape, name),) = shapes.items()
    return None if shape is None else DatasetSample(shape, f"{name} gives {_times(shape)} samples")


def _times(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def class_count(project: Project) -> tuple[int, str, Module, ast.Call] | None:
    """Return the number of classes of the one dataset in use, with its name and place."""
    calls = dataset_calls(project)
    names = {name for _, _, name in calls}
    if len(names) != 1 or not names <= CLASSES.keys():
        return None
    if any(argument(c, "target_transform") is not None for _, c, _ in calls):
        return None
    module, call, name = calls[0]
    return CLASSES[name], name, module, call


def _shape_of(
    project: Project, module: Module, call: ast.Call, name: str
) -> tuple[int, ...] | None:
    transform = argument(call, "transform")
    shape = SHAPES[name]
    if transform is None:
        return None  # PIL images: something else turns them into tensors
    steps = _steps(project, module, call, transform)
    if steps is None:
        return None
    is_tensor = False
    for step, options in steps:
        is_tensor = is_tensor or step in ("ToTensor", "ToImage", "PILToTensor")
        shape = _transformed(shape, step, _arguments(options))
        if shape == ():
            return None
    channels = 3 if shape is not None and len(shape) == 2 else None
    if shape is not None and channels is not None:
        shape = (channels, *shape)
    return shape if is_tensor else None


def _steps(
    project: Project, module: Module, call: ast.Call, node: ast.expr
) -> list[tuple[str, ast.Call]] | None:
    if isinstance(node, ast.Name):
        bound = project.lookup(module, call, node.id)
        return _steps(project, module, call, bound[0]) if len(bound) == 1 else None
    if not isinstance(node, ast.Call):
        return None
    name = (module.qualified(node.func) or "").rsplit(".", 1)[-1]
    if name != "Compose":
        return [(name, node)]
    parts = node.args[0] if node.args else None
    if not isinstance(parts, (ast.List, ast.Tuple)):
        return None
    found = []
    for part in parts.elts:
        if not isinstance(part, ast.Call):
            return None
        found.append(((module.qualified(part.func) or "").rsplit(".", 1)[-1], part))
    return found


def _arguments(call: ast.Call) -> Options:
    return lambda name, position: literal(argument(call, name, position))


def transformed_shape(
    shape: tuple[int, ...], step: str, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[int, ...]:
    """Return what one transform makes of the shape of an image; () where that is not known."""

    def given(name: str, position: int) -> object:
        return args[position] if position < len(args) else kwargs.get(name)

    return _transformed(shape, step, given) or ()


def _transformed(
    shape: tuple[int, ...] | None, step: str, option: Options
) -> tuple[int, ...] | None:
    """Apply one transform; () where it is not known, None where the size is still open."""
    if step in KEEPING or step == "PILToTensor":
        return shape
    if step in SQUARE or step == "Resize":
        area = _area(option("size", 0), shape, is_resize=step == "Resize")
        if area == ():
            return ()
        return None if area is None else (*(shape[:1] if shape and len(shape) == 3 else ()), *area)
    if step == "Grayscale" and shape is not None:
        count = option("num_output_channels", 0)
        return (count if isinstance(count, int) else 1, *shape[-2:])
    if step == "Pad" and shape is not None:
        pad = option("padding", 0)
        if isinstance(pad, int):
            return (*shape[:-2], shape[-2] + 2 * pad, shape[-1] + 2 * pad)
    return ()


def _area(
    given: object, shape: tuple[int, ...] | None, *, is_resize: bool
) -> tuple[int, ...] | None:
    if isinstance(given, int):
        if not is_resize:
            return (given, given)
        is_square = shape is not None and shape[-1] == shape[-2]
        return (given, given) if is_square else None  # the shorter edge; the other is open
    if isinstance(given, (tuple, list)) and len(given) == 2:
        pair = tuple(g for g in given if isinstance(g, int))
        return pair if len(pair) == 2 else ()
    return ()
