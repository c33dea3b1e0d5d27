// The step time without the profiler, as lists and reports show it.
import type { Report, Unprofiled } from "../report";

/** The mean in ns, of the whole run if its telemetry is known; the median if only that was logged. */
export const unprofiledStep = ({ step_ns, step_times_ns: times, run_step_ns: run }: Unprofiled): number =>
  run ? run : times.length > 0 ? times.reduce((sum, time) => sum + time, 0) / times.length : step_ns;

/** A time of the recorded step as a part of the step time that is shown, so that the times of a report add up to it. */
export const shownTime = ({ unprofiled, window }: Report, recorded: number): number =>
  unprofiled && window?.step_ns?.mean ? (recorded * unprofiledStep(unprofiled)) / window.step_ns.mean : recorded;

/** The number of these steps; 0 if it is not known. */
export const unprofiledSteps = ({ steps, run_step_ns: run, run_steps: all }: Unprofiled): number => (run && all ? all : steps);
