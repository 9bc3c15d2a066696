"""A hook on every operation that torch's dispatcher is asked for, at the price of the hook alone."""

from torch.utils._python_dispatch import TorchDispatchMode


class Watch(TorchDispatchMode):
    """Subclasses define `__torch_dispatch__(self, func, types, args=(), kwargs=None)`.

    torch keeps its compiler away from such hooks and imports it for that, a second's work. Here nothing is
    compiled by torch. Where a version doesn't ask, this says nothing to it.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
