"""Kernels with a mistake, a file each: the numbers come out right, and more bytes move than the formula says.

    from kernels.wrong import linear_in_slices
    confirm(linear.experiment, m=[1, 64], k=512, n=512, wrong=linear_in_slices.wrong)

Each is a mistake that people make. None is for use: they show that a count can fail.
"""
