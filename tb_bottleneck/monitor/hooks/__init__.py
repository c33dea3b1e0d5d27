"""What is hung into torch while a monitor is on: one file for each signal, each switched off alone where it fails."""
