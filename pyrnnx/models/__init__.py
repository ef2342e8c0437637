"""Parts that models of every format share: inputs, layers, streams and states."""
