# `just NAME` is `.ci/run NAME` in the active environment; `just all` is `.ci/run`, from empty ones.
[private]
default:
    @just --list

# All steps, from a clean clone and empty environments
all:
    .ci/run

# Fuzzing, mutants, versions, soaks and the full steps of Arm and sanitizers, from empty ones
nightly:
    .ci/run nightly

# Style, format, spelling, workflows, citation
lint:
    .ci/run lint

# mypy, and which part may import which
types:
    .ci/run types

# The default suite
test:
    .ci/run test

# README's two commands, in an empty environment
commands:
    .ci/run commands

# README's samples
readme:
    .ci/run readme

# Source distribution and wheel, with smoke tests
dist:
    .ci/run dist

# The lowest versions of dependencies
lowest:
    .ci/run lowest

# Every other engine of this machine
engines:
    .ci/run engines

# Kernels without Python and layers, built for 64-bit Arm, under qemu
aarch64:
    .ci/run aarch64

# Kernels without Python, and layers with assertions, bounds checks and sanitizers
sanitize:
    .ci/run sanitize

# PyTorch and Keras
torch:
    .ci/run torch

# Whole runs in processes of their own
e2e:
    .ci/run e2e

# Longer groups
slow:
    .ci/run slow

# The lowest and the newest versions of optional packages
versions:
    .ci/run versions

# Altered files, and random graphs
fuzz:
    .ci/run fuzz

# Planted faults
mutants:
    .ci/run mutants

sweeps:
    .ci/run sweeps

# A long stream
soak:
    .ci/run soak

# All that computes, built for 64-bit Arm
aarch64_full:
    .ci/run aarch64_full

# All that computes, with sanitizers
sanitize_full:
    .ci/run sanitize_full
