"""Calls of layers and pushes of streams that run no Python code, as most short ones do."""

cimport cython
cimport numpy as cnp

from pyrnnx._kernels.calls cimport num_threads
from pyrnnx._kernels.packed_layer cimport PackedLayer
from pyrnnx._kernels.threads cimport load_flag

cnp.import_array()


cdef class LayerEntry:
    """Base class of layers: a call that runs no Python code.

    A subclass sets `_packed` and `_is_plain`, whether a call needs neither lengths nor states nor constants. It has the
    methods `_run_checked`, for all other calls and for what the kernels cannot read or write in place, and
    `_memory_error`, which returns the error for a MemoryError.
    """

    cdef public PackedLayer _packed
    cdef public bint _is_plain

    def run(self, X=None, sequence_lens=None, initial_h=None, initial_c=None, *more, out=None, **named):
        """Run over a batch of sequences.

        Parameters
        ----------
        X : array_like
            Input [seq_length, batch_size, input_size], of the weights' dtype.
        sequence_lens : array of int32 or sequence of int, optional
            Length of each row, [batch_size], from 0 to seq_length; of OpenVINO's layers also int64. Default: the layer's
            constant, or seq_length.
        initial_h, initial_c : array_like, optional
            Initial states [num_directions, batch_size, hidden_size]; initial_c for an LSTM only. Default: the layer's
            constants, or zero.
        out : tuple, optional
            An array or None for each result, to write it to. The arrays have the result's shape and dtype. They may
            overlap the inputs: initial_h and initial_c can receive Y_h and Y_c. Default: new arrays.
        **named : array_like
            The same arguments by their names in OpenVINO (sequence_lengths, H, C) or in the layer's convention.

        Returns
        -------
        Y : ndarray
            [seq_length, num_directions, batch_size, hidden_size]; zero beyond a row's length.
        Y_h : ndarray
            State after the last step, [num_directions, batch_size, hidden_size]; zero for a row of length 0.
        Y_c : ndarray
            Cell state after the last step, of the same shape; LSTM only.

        Raises
        ------
        PyrnnxError
            An array does not fit, or an argument is unknown, missing or given by two names.

        Notes
        -----
        The shapes here are those of the canonical convention. A call without lengths and constants, whose arrays need no
        copy, runs no Python code.
        """
        cdef:
            PackedLayer packed
            tuple outputs
        with cython.critical_section(self):
            packed = self._packed if self._is_plain else None
        if packed is not None and sequence_lens is None and not more and not named and (out is None
                                                                                       or type(out) is tuple):
            try:
                outputs = packed.run(load_flag(&num_threads), X, None, initial_h, initial_c, False, out)
            except MemoryError as error:  # perhaps of a signal handler: arrays of `out` may be partly written
                raise self._memory_error(X, error) from error
            if outputs is not None:
                return outputs
        return self._run_checked(X, sequence_lens, initial_h, initial_c, *more, out=out, **named)


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
        sequence_lens : array of int32 or sequence of int, optional
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
