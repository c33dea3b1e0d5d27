"""The places in the user's program that causes come from."""
