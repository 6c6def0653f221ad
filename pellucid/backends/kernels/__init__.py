"""The kernels: an encoder-decoder in 8 bits, searched by one call of a small library in C.

``weights`` rounds a bundle's matrices, ``equation`` is what the library computes, in numpy and to
the last bit, ``library`` calls it, and ``engine`` searches with it. The library is a wheel of its
own, ``pellucid-kernels``, in the folder ``kernels`` of the repository.
"""
