"""DRNN, domain-adversarial training (Ganin and Lempitsky 2015, arXiv 1409.7495; DANN in p-lambda/wilds examples and
DomainBed).

A network tells the domain of a row from the features; they are trained to mislead it, by a gradient that is reversed on
the way back. Differences from WILDS: the classifier has two hidden layers of 128 instead of 1024 and no BatchNorm, so
that those of a stack run as one; the regressor has one learning rate instead of two; the classifier's does not decay
with it (`train.lr_decay`); the risk is meant to be on scaled labels (`train.label_scaling`). Against DomainBed: one
joint step instead of alternating ones. Against the paper: the factor of the reversed gradient does not grow (as WILDS).
"""

from torch import Tensor, nn

from cmixup.backbone import mlp
from cmixup.data import RegressionData
from cmixup.errors import check_count, check_nonnegative, check_positive
from cmixup.methods.domains import DomainBatchMethod
from cmixup.seeding import Streams, torch_seed
from cmixup.training.batch import Batch
from cmixup.training.method import squared_error
from cmixup.training.model_stack import KeepsState, ModelStack
from cmixup.training.optim import descend, make_optimizer
from cmixup.training.training import Training


def reverse(x: Tensor, c: float) -> Tensor:
    """Return `x`, whose gradient is multiplied by -c on the way back."""
    x = x.view_as(x)
    if x.requires_grad:
        x.register_hook(lambda gradient: -c * gradient)  # type: ignore[no-untyped-call]
    return x


class DRNN(KeepsState, DomainBatchMethod):
    """`MSE(head(h), y) + weight * CE(D(reverse(h)), domain)`: D descends the cross-entropy, the features ascend it.

    Args:
        groups: domains a batch; the batch size must be a multiple of it.
        weight: w, of the cross-entropy.
        reversal: c, the factor of the reversed gradient.
        width: of the classifier's hidden layers.
        classifier_lr: learning rate of the classifier (Adam).
    """

    kept_state = ("optimizer",)

    def __init__(
        self, groups: int, weight: float = 0.1, *, reversal: float = 1.0, width: int = 128, classifier_lr: float = 1e-3
    ):
        super().__init__(groups, reads_features=True)
        self.weight, self.reversal = check_nonnegative("weight", weight), check_nonnegative("reversal", reversal)
        self.classifier_lr = check_positive("classifier_lr", classifier_lr)
        self.width = check_count("width", width, 1)

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        super().fit(data, model, streams)
        with torch_seed(int(streams.mixing.integers(2**62)) if streams else 0):
            self.classifier = mlp(self.n_features, self.width, self.width, len(self.domain_ids))

    def begin(self, training: Training) -> None:
        self.optimizer = make_optimizer("adam", self.classifier.parameters(), self.classifier_lr)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        features = model.features(batch.x)  # type: ignore[operator]
        risk = squared_error(model.head(features), batch.y)  # type: ignore[operator]
        log_share = self.classifier(reverse(features, self.reversal)).log_softmax(dim=-1)
        cross_entropy = -log_share.gather(-1, self.domain_index(batch.domain).unsqueeze(-1)).mean(dim=(-2, -1))
        return risk + self.weight * cross_entropy

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        return descend(self.loss(stack.model, batch), stack.optimizer, self.optimizer)
