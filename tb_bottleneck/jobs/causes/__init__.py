"""What holds a job up: one module per kind of cause. Each proposes candidates; the replay decides what they cost."""
