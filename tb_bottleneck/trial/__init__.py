"""Measures a change of a training: runs the unchanged and the changed program in turn, and compares their steps."""
