"""What a team states about recordings and findings: notes in the logdir, merged, and the ledger of fixes."""
