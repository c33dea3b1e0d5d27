"""What delays a job: one module per kind of cause. Each module proposes candidates; the replay computes their costs."""
