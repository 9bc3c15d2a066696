"""Lab 1, your roofline. What its notebook imports."""

from labs.lab1_your_roofline import bench
from labs.lab1_your_roofline.questions import LAB
from labs.lab1_your_roofline.typed_numbers import cards_table

__all__ = ["LAB", "bench", "cards_table"]
