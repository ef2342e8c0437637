/* The entry by which ONNX Runtime finds the operators in this extension module. */
#ifndef PYRNNX_ONNXRUNTIME_REGISTER_H
#define PYRNNX_ONNXRUNTIME_REGISTER_H

#include "api.h"

typedef OrtStatus *(*pyrnnx_register)(OrtSessionOptions *, const OrtApiBase *);
extern pyrnnx_register pyrnnx_register_operators; /* NULL until Python has imported the module */

#endif
