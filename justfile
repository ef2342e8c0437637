# `just NAME` is `.ci/run NAME` in the active environment; `just all` is `.ci/run`, from empty ones.
[private]
default:
    @just --list

# All steps, from a clean clone and empty environments
all:
    .ci/run

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

# The lowest and the newest versions of optional packages
versions:
    .ci/run versions

# Every other engine of this machine
engines:
    .ci/run engines

# What computes, built for 64-bit Arm, under qemu
aarch64:
    .ci/run aarch64

# Assertions, bounds checks and sanitizers
sanitize:
    .ci/run sanitize

# Altered files
fuzz:
    .ci/run fuzz

# PyTorch and Keras
torch:
    .ci/run torch

# Whole runs in processes of their own
e2e:
    .ci/run e2e

# Longer groups
slow:
    .ci/run slow
