"""Faults of the kernels: C, headers and Cython."""

from __future__ import annotations

from mutation.fault import faults

FAULTS = faults(r"""
a tile skips the last k [pyrnnx/_kernels/simd/tiles.h]
    for (; k < depth; k++) {\n        if (mr > 1)
    for (; k + 1 < depth; k++) {\n        if (mr > 1)
    tests/kernels/test_packed_layer.py tests/kernels/test_steps.py tests/layers/test_layer.py
a run stays in the panel where it begins [pyrnnx/_kernels/simd/run_tiles.h]
    if (++gate == nv) gate = 0, block++;
    if (++gate == nv) gate = 0;
    tests/kernels/test_packed_layer.py tests/kernels/test_steps.py tests/layers/test_layer.py
the second k block drops the sums of the first [pyrnnx/_kernels/simd/tiles.h]
    t->init = k_block ? t->out : first.init + r * first.ld_init;
    t->init = first.init + r * first.ld_init;
    tests/kernels/test_packed_layer.py tests/kernels/test_steps.py tests/layers/test_layer.py
rows after the first 256 project the first rows [pyrnnx/_kernels/simd/template.h]
    .x = NAME(row_of)(p, x, r, ldx),
    .x = NAME(row_of)(p, x, 0, ldx),
    tests/kernels/test_packed_layer.py tests/kernels/test_steps.py tests/layers/test_layer.py
int8 panels begin with scales of one gate fewer [pyrnnx/_kernels/simd/pack.h]
    out += gates * sizeof scales;
    out += (gates - 1) * sizeof scales;
    tests/operator/test_quantized.py
coupled input gate reads the peephole of i [pyrnnx/_kernels/simd/lstm.h]
    from_f ? 2 : 0, c)), other = one - first;
    0, c)), other = one - first;
    tests/frontends/openvino/test_functions.py
h(C) is g(C) [pyrnnx/_kernels/simd/lstm.h]
    NAME(activate_gate)(g, &p->functions[2], candidate);
    NAME(activate_gate)(g, &p->functions[1], candidate);
    tests/frontends/onnx/operators/test_functions.py
linear_before_reset: r also multiplies the projection [pyrnnx/_kernels/simd/gru.h]
    FMA(N, LOAD(SUM(g, 2)) / D, LOAD(PROJECTED(g, 2)))
    (N * ((LOAD(PROJECTED(g, 2)) + LOAD(SUM(g, 2))) / D))
    tests/frontends/onnx/operators/test_functions.py
the hidden gate is not clipped with other activations [pyrnnx/_kernels/simd/gru.h]
        NAME(clip_gate)(g, h);\n
    (nothing)
    tests/frontends/onnx/operators/test_functions.py
HardSigmoid without its upper bound [pyrnnx/_kernels/simd/functions.h]
    AT_MOST(SET1(1), AT_LEAST(SET1(0), FMA(alpha, x, beta)))
    AT_LEAST(SET1(0), FMA(alpha, x, beta))
    tests/kernels/test_activations.py
the last unit of a row of many steps is not written [pyrnnx/_kernels/simd/steps.h]
    (size_t)rest * sizeof(REAL)
    (size_t)(rest - 1) * sizeof(REAL)
    tests/kernels/test_packed_layer.py tests/kernels/test_steps.py tests/layers/test_layer.py
float16 rounds ties up [pyrnnx/_kernels/storage.h]
    + 0xfff + ((magnitude >> 13) & 1)
    + 0x1000
    tests/kernels/test_packed_layer.py tests/kernels/test_steps.py tests/layers/test_layer.py
    tests/frontends/onnx/operators/test_functions.py
zero points of codes are truncated [pyrnnx/_kernels/simd/codes.h]
    (int)rintf(zero < 255 ? zero : 255)
    (int)(zero < 255 ? zero : 255)
    tests/kernels/test_codes.py tests/frontends/onnx/operators/test_quantized.py
the total of a gate row includes its zero point [pyrnnx/_kernels/simd/code_panels.h]
    total[lane] += code - zero_point[lane];
    total[lane] += code;
    tests/kernels/test_codes.py tests/frontends/onnx/operators/test_quantized.py
matrices skip a product of parts [pyrnnx/_kernels/simd/split_matrices.h]
                LOAD_W(2);\n            DOTS();\n
    (nothing)
    tests/kernels/test_matrices.py
the second phase multiplies the weights of the first [pyrnnx/_kernels/simd/split_steps.h]
    t.w = (const char *)p->split_R + columns * t.w_column;
    t.w = (const char *)p->split_R + 0 * columns;
    tests/kernels/test_matrices.py
a reverse row begins in its padding [pyrnnx/_kernels/blocks.pxd]
    return length_at(b, place) - 1 - step if b.reverse else step
    return b.call.seq_length - 1 - step if b.reverse else step
    tests/frontends/onnx/operators/test_functions.py
X with gaps between its steps is read as one block [pyrnnx/_kernels/operands.pyx]
    and (X.t == call.batch_size * distance or steps == 1)
    and X.t != 0
    tests/layers/test_layer.py tests/layers/test_calls.py
Y is not zero in the first step after a row [pyrnnx/_kernels/timeloop.pyx]
    for t in range(length_at(b, place), call.seq_length):
    for t in range(length_at(b, place) + 1, call.seq_length):
    tests/layers/test_out.py tests/frontends/onnx/operators/test_functions.py
threads skip unit blocks that they cannot share evenly [pyrnnx/_kernels/timeloop.pyx]
    b.call.unit_blocks * (rank + 1) // team_size
    b.call.unit_blocks // team_size * (rank + 1)
    tests/kernels/test_threads.py
a signal handler's error does not stop a call [pyrnnx/_kernels/threads/interrupt.h]
    if (interrupt->check()) PYRNNX_STORE(&interrupt->stop, 1);
    interrupt->check();
    tests/layers/test_interrupt.py
the kernels accept negative lengths [pyrnnx/_kernels/calls.pyx]
    if not 0 <= lengths[k] <= call.seq_length:
    if lengths[k] > call.seq_length:
    tests/layers/test_calls.py tests/frontends/onnx/operators/test_functions_errors.py
a push writes Y over an X that it reads [pyrnnx/_kernels/packed_layer.pyx]
    if Y is None or (out is not None and not is_disjoint(Y, X)):
    if Y is None:
    tests/layers/test_stream.py tests/layers/test_out.py
BLAS: the reset gate has no activation [pyrnnx/_kernels/blas/engine.pyx]
    activate(&p.functions[0], p.clip, z, z, 2 * H)
    activate(&p.functions[0], p.clip, z, z, H)
    tests/kernels/test_blas.py
BLAS: f uses the peephole of o [pyrnnx/_kernels/blas/engine.pyx]
    add_peephole(P + 2 * H, C, f, H)
    add_peephole(P + H, C, f, H)
    tests/kernels/test_blas.py
BLAS: Softsign of infinity is NaN [pyrnnx/_kernels/blas/formulas.h]
    if (isinf(x)) return x > 0 ? 1 : -1;
    (nothing)
    tests/kernels/test_activations.py
a function of a session may write to its inputs [pyrnnx/_kernels/onnxruntime/functions.pyx]
    array.flags.writeable = False
    array.flags.writeable = True
    tests/custom_operators/test_recurrent.py tests/custom_operators/test_python.py
constant lengths of another batch in a session [pyrnnx/_kernels/onnxruntime/recurrent.pyx]
            if kernel.length_count != count:\n            return False\n        memcpy
            count = min(count, kernel.length_count)\n        memcpy
    tests/custom_operators/test_recurrent.py tests/custom_operators/test_python.py
""")
