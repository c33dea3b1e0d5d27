"""Slow trainings and their fixes: one short script per problem, and recorded runs of both variants."""
