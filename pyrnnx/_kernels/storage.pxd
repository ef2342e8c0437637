"""How elements lie in the caller's arrays, and rows of them carried to and from the kernels' float or double."""

from libc.stdint cimport uint16_t, uint32_t
from libc.string cimport memcpy

cdef enum Storage:
    NATIVE      # the kernels' own float32 or float64
    FLOAT16     # IEEE binary16
    BFLOAT16    # the upper half of a float32


cdef inline float _from_bits(uint32_t bits) noexcept nogil:
    cdef float value
    memcpy(&value, &bits, 4)
    return value


cdef inline uint32_t _bits(float value) noexcept nogil:
    cdef uint32_t bits
    memcpy(&bits, &value, 4)
    return bits


cdef inline float float16_to_float(uint16_t half) noexcept nogil:
    cdef:
        uint32_t sign = <uint32_t> (half & 0x8000) << 16
        uint32_t magnitude = <uint32_t> (half & 0x7FFF) << 13
    if magnitude >= 0x0F800000:  # infinity and NaN: the exponent is all ones in both formats
        return _from_bits(sign | magnitude | 0x7F800000)
    # times 2**112 moves the exponent's bias from 15 to 127, subnormals included, without rounding
    return _from_bits(sign | _bits(_from_bits(magnitude) * <float> 5.192296858534828e33))


cdef inline uint16_t float_to_float16(float value) noexcept nogil:
    """Rounds to nearest, ties to even."""
    cdef:
        uint32_t bits = _bits(value)
        uint32_t sign = (bits >> 16) & 0x8000
        uint32_t magnitude = bits & 0x7FFFFFFF
    if magnitude > 0x7F800000:
        return <uint16_t> (sign | 0x7E00)
    if magnitude >= 0x477FF000:  # 65520 and above round to infinity
        return <uint16_t> (sign | 0x7C00)
    if magnitude < 0x38800000:  # below 2**-14: adding 0.5 rounds to a multiple of 2**-24, the subnormal step
        return <uint16_t> (sign | (_bits(_from_bits(magnitude) + <float> 0.5) - 0x3F000000))
    return <uint16_t> (sign | ((magnitude - 0x38000000 + 0xFFF + ((magnitude >> 13) & 1)) >> 13))


cdef inline float bfloat16_to_float(uint16_t half) noexcept nogil:
    return _from_bits(<uint32_t> half << 16)


cdef inline uint16_t float_to_bfloat16(float value) noexcept nogil:
    """Rounds to nearest, ties to even."""
    cdef uint32_t bits = _bits(value)
    if bits & 0x7FFFFFFF > 0x7F800000:
        return <uint16_t> ((bits >> 16) | 0x40)
    return <uint16_t> ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)


cdef inline void read_row(int storage, int itemsize, const char *source, void *row, Py_ssize_t n) noexcept nogil:
    """n elements from the caller's array, widened to the kernels' type."""
    cdef:
        Py_ssize_t i
        uint16_t half
    if storage == NATIVE:
        memcpy(row, source, n * itemsize)
        return
    for i in range(n):
        memcpy(&half, source + 2 * i, 2)
        (<float *> row)[i] = float16_to_float(half) if storage == FLOAT16 else bfloat16_to_float(half)


cdef inline void write_row(int storage, int itemsize, const void *row, char *target, Py_ssize_t n) noexcept nogil:
    """n elements to the caller's array, rounded once."""
    cdef:
        Py_ssize_t i
        float value
        uint16_t half
    if storage == NATIVE:
        memcpy(target, row, n * itemsize)
        return
    for i in range(n):
        value = (<const float *> row)[i]
        half = float_to_float16(value) if storage == FLOAT16 else float_to_bfloat16(value)
        memcpy(target + 2 * i, &half, 2)
