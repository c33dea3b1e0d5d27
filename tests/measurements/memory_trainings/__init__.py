"""Small trainings on the CPU whose memory is recorded with torch.profiler."""
