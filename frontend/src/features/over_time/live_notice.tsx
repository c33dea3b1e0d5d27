// What holds a job up right now, above its reports; and in other places, that a job has stopped.
import { addStyle } from "../../shared/page/style_sheet";
import { isOpen, type LiveJob } from "../../shared/live";
import { count } from "../../shared/text/format";
import { quoted } from "../../shared/text/shell";
import { CopyButton } from "../../shared/widgets/copy_button";
import { Icon } from "../../shared/widgets/icon";
import sheet from "./live.css";

addStyle(sheet);

interface Props {
  readonly job: LiveJob;
  readonly logdir: string;
  readonly open: (() => void) | undefined;
}

/** The state of the job that is shown. */
export function LiveNotice({ job, logdir, open }: Props) {
  const { verdict, step, world_size } = job;
  return (
    <section class={`live-notice ${verdict.severity}`} aria-label="State of the running training">
      <p role={verdict.stalled ? "alert" : "status"}>
        <Icon name={verdict.severity === "critical" ? "warning" : "info"} />
        <strong>Now:</strong> {verdict.headline} {verdict.fix}
      </p>
      <p class="muted">
        Step {count(Math.max(step, 0))}
        {world_size > 1 && ` of ${count(world_size)} ranks`}, from heartbeats of the last seconds.
        {job.missing_ranks.length > 0 && ` No heartbeat of ${count(job.missing_ranks.length)} ranks: they have no monitor, or have not started.`}{" "}
        {open && (
          <button type="button" class="link" onClick={open}>
            Show the ranks over time
          </button>
        )}{" "}
        {world_size > 1 && !verdict.stalled && isOpen(job) && (
          <CopyButton
            text={() => `tb-bottleneck capture ${quoted(logdir)} --machine`}
            title="Code or machine? Copy the command"
            label="Copy the command that lets all ranks measure their machines for 3 seconds"
          />
        )}
      </p>
    </section>
  );
}

/** Jobs that cannot go on, wherever the page is. */
export function StalledJobs({ jobs, open }: { jobs: readonly LiveJob[]; open: (job: LiveJob) => void }) {
  const stalled = jobs.filter(({ verdict }) => verdict.stalled);
  if (stalled.length === 0) return null;
  return (
    <div class="live-notice critical" role="alert">
      {stalled.map((job) => (
        <p key={job.ranks[0]?.directory}>
          <Icon name="warning" />
          <strong>{job.run}:</strong> {job.verdict.headline}{" "}
          <button type="button" class="link" onClick={() => open(job)}>
            Open
          </button>
        </p>
      ))}
    </div>
  );
}
