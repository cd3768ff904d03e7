"""Every adapter passes every check."""

import pytest

from tests.adapters.conformance import CHECKS, COSTLY, WORKER_CHECKS
from tests.adapters.kinds import ADAPTERS, Plain


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("check", CHECKS)
def test_adapter(adapter: str, check: str) -> None:
    kind = ADAPTERS[adapter]
    if adapter not in COSTLY.get(check, ADAPTERS):
        pytest.skip("another adapter with the same draws is checked")
    if check == "evaluation" and not kind.evaluates:
        pytest.skip("it is for training only")
    if check == "memory" and issubclass(kind, Plain):
        pytest.skip("it reads row by row, slowly under tracemalloc: test_pairs looks at its sampler")
    CHECKS[check](kind)


@pytest.mark.slow
@pytest.mark.parametrize("check", WORKER_CHECKS)
@pytest.mark.parametrize("adapter", [name for name, kind in ADAPTERS.items() if kind.workers])
def test_adapter_with_workers(adapter: str, check: str) -> None:
    WORKER_CHECKS[check](ADAPTERS[adapter])
