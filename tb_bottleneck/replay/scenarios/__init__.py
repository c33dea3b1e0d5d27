"""One scenario per file: what a cure changes in the recorded world, what it assumes, what bounds it."""
