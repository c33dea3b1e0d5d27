"""Measures the effect of a change of a training: runs the unchanged and the changed program, and compares step times.

A trial consists of rounds. In each round, the unchanged program and each variant whose gain is not known yet run once.
One of these runs is called a block. If possible, the blocks of a round are started together and train in short turns.
"""
