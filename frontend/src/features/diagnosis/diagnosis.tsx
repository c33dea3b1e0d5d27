// The diagnosis of one recording: where the time goes, what to change, what was checked.
import type { ComponentChildren } from "preact";
import type { Disagreement, Replay, Report } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import { shownTime } from "../../shared/run/unprofiled";
import { share } from "../../shared/text/format";
import { Fold } from "../../shared/widgets/fold";
import { Health } from "../../shared/widgets/health";
import { lazyView } from "../../shared/widgets/lazy_view";
import { WithCode } from "../../shared/widgets/with_code";
import { Account } from "./account";
import { checkedRegimes } from "./checked";
import { Findings } from "./findings";
import { About, Facts } from "./headline";
import { MemoryCard } from "./memory_card";
import type { ShowPlace } from "./places";
import { Review, type Reviewed } from "./review";
import { untrusted } from "./untrusted";

const Plan = lazyView(async () => (await import("./plan")).Plan);
const Regimes = lazyView(async () => (await import("./regimes")).Regimes);

interface Props {
  readonly report: Report;
  /** Parts of the report that few recordings have. */
  readonly details?: ComponentChildren;
  /** Shows a range of time on the timeline or in the telemetry. Undefined once the recording is gone, as is `predict`. */
  readonly showFocus: ((focus: Focus) => void) | undefined;
  /** Opens the what-if view. */
  readonly predict: (() => void) | undefined;
  /** Opens the memory view. */
  readonly showMemory?: () => void;
  readonly reviewed: Reviewed | undefined;
  /** The run over time. */
  readonly phases?: ComponentChildren;
  /** The account of the whole run. */
  readonly run?: ComponentChildren;
  /** The efficiency, and what remains to gain. */
  readonly efficiency?: ComponentChildren;
  /** Shows a place of the program in the breakdown. */
  readonly showPlace?: ShowPlace;
}

export function Diagnosis({ report, details, phases, run, showFocus, predict, showMemory, reviewed, efficiency, showPlace }: Props) {
  const { broken_parts: broken, findings, memory, window, verdict } = report;
  const account = report.account.map((row) => ({ ...row, ns_per_step: shownTime(report, row.ns_per_step) }));
  const plan = report.plan.map((step) => ({ ...step, step_ns_after: shownTime(report, step.step_ns_after) }));
  const health = report.health && <Health health={report.health} />;
  return (
    <>
      {verdict ? <About report={report} /> : [health, window && <Facts report={report} />]}
      {account.length > 0 && <Account account={account} inSteps={window?.basis !== "whole"} onCpu={report.device?.kind === "cpu"} />}
      <Findings report={report} showFocus={showFocus} reviewed={reviewed} showPlace={showPlace} showMemory={showMemory} />
      {predict && verdict && report.evidence_source !== "telemetry" && <WhatIfLink predict={predict} />}
      {(plan.length > 0 || report.replay) && (
        <Fold title="Order of changes, and accuracy of the predictions">
          {plan.length > 0 && <Plan plan={plan} findings={findings} />}
          {report.replay && <ReplayNote replay={report.replay} />}
        </Fold>
      )}
      {(run || phases) && <Fold title="The run over time">{[phases, run]}</Fold>}
      {(efficiency || details || memory) && (
        <Fold title="Efficiency, input, compilation and memory">
          {efficiency}
          {details}
          {memory && <MemoryCard memory={memory} open={showMemory} />}
        </Fold>
      )}
      {verdict && (
        <Fold title={`The recording${report.health?.reasons.length ? ", and what limits it" : ""}`}>
          {window && <Facts report={report} />}
          {health}
          {verdict.situation && <p><WithCode text={verdict.situation} /></p>}
          {window?.correction && <p class="unprofiled">{window.correction}</p>}
          {report.unprofiled?.sentence && <p class="unprofiled">{report.unprofiled.sentence}</p>}
          <Disagreements disagreements={report.disagreements} untrusted={untrusted(report)} />
          {reviewed && <Review {...reviewed} cause="" title="the recording" />}
        </Fold>
      )}
      {report.regimes.length + broken.length > 0 && (
        <Fold title="What was checked">
          <Regimes regimes={checkedRegimes(report)} broken={broken} />
        </Fold>
      )}
    </>
  );
}

/** The plan improves the run as it is; other hardware and settings are predicted in the what-if view. */
function WhatIfLink({ predict }: { predict: () => void }) {
  return (
    <p class="what-if-link">
      <button type="button" class="link" onClick={predict}>
        Would another device, more workers, another batch size or precision help?
      </button>
    </p>
  );
}

function ReplayNote({ replay }: { replay: Replay }) {
  if (replay.because) return <p class="muted footnote">No prediction for this recording: {replay.because}</p>;
  return (
    <p class="muted footnote">
      Accuracy of the simulation: an unchanged replay of this recording misses its time by {share(replay.error)};{" "}
      {share(replay.frozen_share)} of the time is waiting that the simulation cannot change. {replay.host}
    </p>
  );
}

function Disagreements({ disagreements, untrusted }: { disagreements: readonly Disagreement[]; untrusted: readonly string[] }) {
  if (disagreements.length + untrusted.length === 0) return null;
  return (
    <section>
      <h2>Where trace and telemetry disagree</h2>
      <ul class="disagreements">
        {untrusted.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
        {disagreements.map(({ regime, sentence }) => (
          <li key={regime}>{sentence}</li>
        ))}
      </ul>
    </section>
  );
}
