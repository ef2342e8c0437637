"""Stacks: layers that run one after another, with any directions and sizes."""
