"""Replays all ranks of a job together: their own work, and the communications that connect them."""
