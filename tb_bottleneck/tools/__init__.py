"""Stand-alone measurements that need torch: device calibration and the DataLoader sweep."""
