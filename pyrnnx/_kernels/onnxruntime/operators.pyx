"""The custom operators of domain "pyrnnx", and `RegisterCustomOps`, by which a session finds them.

A node names its layer or function by the attribute `handle`, of this process. A Recurrent without one has its weights
as constant inputs, and describes its layer in other attributes.
"""

cimport cython
from libc.string cimport memset

from pyrnnx._kernels.onnxruntime.api cimport (
    PYRNNX_ORT_API_VERSION,
    PYRNNX_ORT_FAIL,
    PYRNNX_ORT_OPTIONAL,
    PYRNNX_ORT_REQUIRED,
    PYRNNX_ORT_UNDEFINED,
    PYRNNX_ORT_VARIADIC,
    OrtApi,
    OrtApiBase,
    OrtCustomOp,
    OrtCustomOpDomain,
    OrtFunctions,
    OrtSessionOptions,
    OrtStatus,
    load_functions,
)
from pyrnnx._kernels.onnxruntime.functions cimport compute_python, create_python, destroy_python, infer_python
from pyrnnx._kernels.onnxruntime.inference cimport infer_recurrent, infer_unfold
from pyrnnx._kernels.onnxruntime.recurrent cimport (
    INPUT_COUNT,
    compute_recurrent,
    create_recurrent,
    destroy_recurrent,
)
from pyrnnx._kernels.onnxruntime.runtime cimport ort
from pyrnnx._kernels.onnxruntime.unfold cimport compute_unfold, create_unfold, destroy_unfold

cdef extern from "onnxruntime/register.h":
    ctypedef OrtStatus *(*Register)(OrtSessionOptions *, const OrtApiBase *) noexcept nogil
    Register pyrnnx_register_operators

cdef:
    const char *MARK = b"pyrnnx.operators"    # of options that have them: a domain cannot be added twice
    list registration = []      # locked while the next two are set
    const OrtApi *loaded = NULL
    OrtCustomOpDomain *domain = NULL
    OrtCustomOp recurrent_operator
    OrtCustomOp python_operator
    OrtCustomOp unfold_operator


cdef const char *recurrent_name(const OrtCustomOp *op) noexcept nogil:
    return b"Recurrent"

cdef const char *python_name(const OrtCustomOp *op) noexcept nogil:
    return b"Python"

cdef const char *unfold_name(const OrtCustomOp *op) noexcept nogil:
    return b"Unfold"

cdef const char *cpu(const OrtCustomOp *op) noexcept nogil:
    return NULL

cdef int any_type(const OrtCustomOp *op, size_t place) noexcept nogil:
    return PYRNNX_ORT_UNDEFINED

cdef size_t recurrent_inputs(const OrtCustomOp *op) noexcept nogil:
    return INPUT_COUNT

cdef size_t recurrent_outputs(const OrtCustomOp *op) noexcept nogil:
    return 3

cdef size_t single(const OrtCustomOp *op) noexcept nogil:
    return 1

cdef int recurrent_input(const OrtCustomOp *op, size_t place) noexcept nogil:
    return PYRNNX_ORT_OPTIONAL if place else PYRNNX_ORT_REQUIRED

cdef int recurrent_output(const OrtCustomOp *op, size_t place) noexcept nogil:
    return PYRNNX_ORT_OPTIONAL

cdef int variadic(const OrtCustomOp *op, size_t place) noexcept nogil:
    return PYRNNX_ORT_VARIADIC

cdef int required(const OrtCustomOp *op, size_t place) noexcept nogil:
    return PYRNNX_ORT_REQUIRED

cdef int default_memory(const OrtCustomOp *op, size_t place) noexcept nogil:
    return 0

cdef int none(const OrtCustomOp *op) noexcept nogil:
    return 0

cdef int first_version(const OrtCustomOp *op) noexcept nogil:
    return 1

cdef int last_version(const OrtCustomOp *op) noexcept nogil:
    return 0x7fffffff


cdef OrtCustomOp blank_operator() noexcept:
    cdef OrtCustomOp op
    memset(&op, 0, sizeof(op))
    op.version, op.GetExecutionProviderType = PYRNNX_ORT_API_VERSION, cpu
    op.GetInputType, op.GetOutputType, op.GetInputMemoryType = any_type, any_type, default_memory
    op.GetVariadicInputMinArity = op.GetVariadicInputHomogeneity = none
    op.GetVariadicOutputMinArity = op.GetVariadicOutputHomogeneity = none
    op.GetStartVersion, op.GetEndVersion = first_version, last_version
    return op


cdef OrtCustomOp variadic_operator() noexcept:
    """Return an operator of any number of inputs and outputs."""
    cdef OrtCustomOp op = blank_operator()
    op.GetInputTypeCount = op.GetOutputTypeCount = single
    op.GetInputCharacteristic = op.GetOutputCharacteristic = variadic
    return op


recurrent_operator = blank_operator()
recurrent_operator.GetName = recurrent_name
recurrent_operator.GetInputTypeCount, recurrent_operator.GetOutputTypeCount = recurrent_inputs, recurrent_outputs
recurrent_operator.GetInputCharacteristic, recurrent_operator.GetOutputCharacteristic = recurrent_input, recurrent_output
recurrent_operator.CreateKernelV2, recurrent_operator.KernelDestroy = create_recurrent, destroy_recurrent
recurrent_operator.KernelComputeV2, recurrent_operator.InferOutputShapeFn = compute_recurrent, infer_recurrent

python_operator = variadic_operator()
python_operator.GetName = python_name
python_operator.CreateKernelV2, python_operator.KernelDestroy = create_python, destroy_python
python_operator.KernelComputeV2, python_operator.InferOutputShapeFn = compute_python, infer_python

unfold_operator = blank_operator()
unfold_operator.GetName = unfold_name
unfold_operator.GetInputTypeCount = unfold_operator.GetOutputTypeCount = single
unfold_operator.GetInputCharacteristic = unfold_operator.GetOutputCharacteristic = required
unfold_operator.CreateKernelV2, unfold_operator.KernelDestroy = create_unfold, destroy_unfold
unfold_operator.KernelComputeV2, unfold_operator.InferOutputShapeFn = compute_unfold, infer_unfold


cdef OrtStatus *register(OrtSessionOptions *options, const OrtApiBase *base) noexcept with gil:
    """Add the operators to options of sessions, which may have them already."""
    global loaded, domain
    cdef:
        const OrtApi *api = base.GetApi(PYRNNX_ORT_API_VERSION)
        OrtStatus *status
        OrtFunctions first
        int has = 0
    with cython.critical_section(registration):
        if api == NULL or (loaded != NULL and loaded != api):
            load_functions(&first, base.GetApi(1) if api == NULL else api)
            if api == NULL:
                return first.CreateStatus(PYRNNX_ORT_FAIL, b"pyrnnx: its operators need ONNX Runtime 1.24 or later")
            return first.CreateStatus(PYRNNX_ORT_FAIL, b"pyrnnx: its operators are in use by another ONNX Runtime")
        if loaded == NULL:
            load_functions(&ort, api)
            loaded = api
        if domain == NULL:  # one for all sessions, which is never released
            status = ort.CreateCustomOpDomain(b"pyrnnx", &domain)
            if status == NULL:
                status = ort.CustomOpDomain_Add(domain, &recurrent_operator)
            if status == NULL:
                status = ort.CustomOpDomain_Add(domain, &python_operator)
            if status == NULL:
                status = ort.CustomOpDomain_Add(domain, &unfold_operator)
            if status != NULL:
                return status
    status = ort.HasSessionConfigEntry(options, MARK, &has)
    if status == NULL and not has:
        status = ort.AddSessionConfigEntry(options, MARK, b"1")
        if status == NULL:
            status = ort.AddCustomOpDomain(options, domain)
    return status


pyrnnx_register_operators = register
