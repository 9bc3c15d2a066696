"""One operation on several cards: a process a rank, through torch.distributed.

`launch` starts the ranks and collects their answers, `collectives` are the collectives with every
byte counted, `linear` is a linear layer cut by columns or by rows. On CPUs the ranks talk through
gloo and kernels run in Triton's interpreter; on GPUs through NCCL, and kernels are compiled.
"""
