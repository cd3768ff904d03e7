"""torchvision's networks: any by its name, the stages of some, import without compiled operators, and weights."""

import hashlib
import importlib
import re
from collections import OrderedDict
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

from cmixup.backbone import Blockwise
from cmixup.errors import InputError, nearest

MISSING = "operator torchvision::nms does not exist"
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_libraries: list[torch.library.Library] = []  # a declaration lives as long as its library


class Staged(Blockwise):
    """Stages, which have the names of the mix points, a mean over positions, and a linear layer `fc`."""

    fc: nn.Linear

    def run(self, state: Tensor, first: int, last: int) -> Tensor:
        for name in self.layers[first + 1 : last + 1]:
            state = getattr(self, name)(state)
        return state

    def pool(self, state: Tensor) -> Tensor:
        return state.mean(dim=tuple(range(2, state.ndim)))

    def head(self, features: Tensor) -> Tensor:
        return self.fc(features)


class Torchvision(Blockwise):
    """A classifier of torchvision's as a regressor: its last linear layer is replaced, whatever its size.

    Args:
        in_shape: shape of one input, `(3, height, width)`.
        out_features: label width d_y.
        network: its name, one of `torchvision.models.list_models(torchvision.models)` that ends in a linear layer.
        weights: a file of its weights, as torchvision publishes them, for everything but the last layer; None
            initialises at random.

    Raises:
        InputError: other inputs, no such network, weights that cannot be read or do not fit.
    """

    layers = ("input", "features")
    default_layer = "features"

    def __init__(self, in_shape: tuple[int, ...], out_features: int, network: str, weights: str | None = None):
        super().__init__()
        if len(in_shape) != 3 or in_shape[0] != 3:
            raise InputError(f"in_shape must be (3, height, width) for torchvision, got {tuple(in_shape)}")
        models = import_torchvision("torchvision.models")
        names = models.list_models(module=models)
        if network not in names:
            raise InputError(f"model.network {network!r} is none of torchvision's{nearest(network, names)}")
        self.trunk = models.get_model(network, weights=None)
        name, last = [part for part in self.trunk.named_modules() if not list(part[1].children())][-1]
        if not isinstance(last, nn.Linear) or hasattr(self.trunk, "aux_logits"):
            raise InputError(f"model.network must end in one linear layer, which {network} does not")
        self.trunk.set_submodule(name, nn.Identity())
        self.last = nn.Linear(last.in_features, out_features)
        try:
            with torch.no_grad():
                self.trunk.eval()(torch.zeros(1, *in_shape))
        except (AssertionError, RuntimeError, ValueError) as error:
            raise InputError(f"model.network {network} cannot take inputs {tuple(in_shape)}: {error}") from None
        self.trunk.train()
        if weights is not None:
            path = Path(weights)
            self.notes = (f"{network} from {path.name} (SHA-256 {load_weights(self.trunk, path, name)})",)

    def run(self, state: Tensor, first: int, last: int) -> Tensor:
        """Run inputs `(B, 3, H, W)` to the features `(B, D)` that the last layer reads, if they are to be."""
        return self.trunk(state) if first < last else state

    def head(self, features: Tensor) -> Tensor:
        return self.last(features)


def import_torchvision(module: str = "torchvision") -> ModuleType:
    """Import a module of torchvision, also beside a CPU build of PyTorch that cannot load its compiled operators.

    That import stops because it registers a fake of an operator that is not there. The schemas are declared only then:
    where the operators can be loaded, a second declaration would abort the process.
    """
    try:
        return importlib.import_module(module)
    except RuntimeError as error:
        if MISSING not in str(error) or _libraries:
            raise
    _libraries.append(torch.library.Library("torchvision", "FRAGMENT"))  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        _libraries[0].define(name + _SCHEMA)  # type: ignore[no-untyped-call]
    return importlib.import_module(module)


def load_weights(network: nn.Module, path: Path, last: str = "fc") -> str:
    """Load a state dict as torchvision publishes it, but for the last layer, and return the file's SHA-256.

    Counters of BatchNorm, which files of older versions lack, may be absent, and a DenseNet's layers called `norm.1`.
    """
    head = f"{last}."
    kept = {n: v for n, v in network.state_dict().items() if n.startswith(head) or n.endswith("num_batches_tracked")}
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        state = {re.sub(r"(\.denselayer\d+\.\w+)\.([12]\.)", r"\1\2", name): v for name, v in dict(loaded).items()}
    except Exception as error:  # reading a file that is no state dict can raise anything
        reason = error.strerror if isinstance(error, OSError) else "it holds no state dict of tensors"
        raise InputError(f"weights {path} cannot be read: {reason}") from None
    try:
        new_state = OrderedDict(kept | {name: v for name, v in state.items() if not name.startswith(head)})
        setattr(new_state, "_metadata", getattr(loaded, "_metadata", None))  # noqa: B010 - of versions, for MNASNet
        network.load_state_dict(new_state)
    except Exception as error:  # entries that are no tensors can raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"weights {path} do not fit {type(network).__name__}: {reason}") from None
    return hashlib.sha256(path.read_bytes()).hexdigest()
