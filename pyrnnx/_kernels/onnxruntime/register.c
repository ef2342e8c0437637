#include <Python.h>

#include "register.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

pyrnnx_register pyrnnx_register_operators;

static OrtStatus *refused(const OrtApiBase *base) {
    OrtStatus *(*create_status)(int, const char *) =
        (OrtStatus * (*)(int, const char *))((void *const *)base->GetApi(1))[0];
    return create_status(PYRNNX_ORT_FAIL, "pyrnnx: its operators need a Python program that can import pyrnnx");
}

/* Add the operators to a session's options; where only the path of this module is known, import pyrnnx first. */
EXPORT OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {
    if (pyrnnx_register_operators == NULL && Py_IsInitialized()) {
        PyGILState_STATE state = PyGILState_Ensure();
        PyObject *module = PyImport_ImportModule("pyrnnx.layers.custom_operators");
        if (module == NULL) PyErr_Clear();
        Py_XDECREF(module);
        PyGILState_Release(state);
    }
    return pyrnnx_register_operators == NULL ? refused(base) : pyrnnx_register_operators(options, base);
}
