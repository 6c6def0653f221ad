"""Every equation as one pure function: no parameters, no state, no random numbers.

The modules follow the order of the paper, and each function is imported from the module in which
it stands: ``from pellucid.equations.attention import attention``. The fast twins are in ``fused``.
"""
