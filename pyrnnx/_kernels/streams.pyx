"""The states of a stream, and a push that runs no Python code."""

cimport cython
cimport numpy as cnp

from pyrnnx._kernels.packed_layer cimport PackedLayer

cnp.import_array()


cdef class StreamStates:
    """Base class of streams: the states between two pushes, and a push that runs no Python code.

    A subclass sets `_h`, `_c` (LSTM only) and `_packed`, and has a method `_push_checked`, which handles what the
    kernels cannot read or write in place.
    """

    cdef public cnp.ndarray _h, _c
    cdef public PackedLayer _packed

    def push(self, X, sequence_lens=None, *, out=None):
        """Run the next time steps of every row.

        Parameters
        ----------
        X : array_like
            Input of the layer: [seq_length, batch_size, input_size] in the canonical convention.
        sequence_lens : array_like of int, optional
            Number of steps of each row; a row of length 0 keeps its state. Default: all steps of X.
        out : ndarray, optional
            Array of the shape and dtype of Y to write it to. It may overlap X. Default: a new array.

        Returns
        -------
        ndarray
            Y of these steps, zero beyond a row's length. This is `out`, if given.

        Raises
        ------
        PyrnnxError
            An array does not fit the layer or the stream's batch_size. The states are unchanged.
        """
        cdef:
            cnp.ndarray Y, h, c
            PackedLayer packed
        with cython.critical_section(self):  # a stream is not thread-safe, but must not crash
            h, c, packed = self._h, self._c, self._packed
        if sequence_lens is None and packed is not None:
            Y = packed.push(X, h, c, out)
            if Y is not None:
                return Y
        return self._push_checked(X, sequence_lens, out)
