// The step time without the profiler, as lists and reports show it.
import type { Unprofiled } from "../report";

/** The mean in ns; the median if only that was logged. */
export const unprofiledStep = ({ step_ns, step_times_ns: times }: Unprofiled): number =>
  times.length > 0 ? times.reduce((sum, time) => sum + time, 0) / times.length : step_ns;
