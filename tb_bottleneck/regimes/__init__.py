"""Opinions: one small file per regime, judged from measures and from nothing else."""
