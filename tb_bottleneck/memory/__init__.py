"""What fills the memory: accounts, findings and predictions from memory events, snapshots and counters."""
