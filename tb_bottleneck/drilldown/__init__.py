"""Details of one recording, computed on request: timeline, tables, roofline, trace slice."""
