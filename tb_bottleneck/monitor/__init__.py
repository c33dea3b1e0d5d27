"""The training side: it writes down what happens, judges nothing, and never raises into the training loop."""
