"""Evidence that a formula holds: counted, executed, compiled, timed, recorded, published.

    from kernels.evidence import confirm, cpu_roofline

Each rung is a module with that name; `confirm` climbs as many as this machine allows.
"""

from kernels.contract.errors import ImpossibleResult, PhysicsDisagrees, Unsupported
from kernels.evidence.confirm import Evidence, confirm
from kernels.evidence.cpu import cpu_roofline

__all__ = ["Evidence", "ImpossibleResult", "PhysicsDisagrees", "Unsupported", "confirm", "cpu_roofline"]
