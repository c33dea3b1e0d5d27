// Predicts the recording under other conditions: a form for the conditions, and the prediction; without conditions, a table of
// the usual ones.
import { scrollToCause } from "../../../shared/page/scroll_to_cause";
import { addStyle } from "../../../shared/page/style_sheet";
import type { Report, RunEntry } from "../../../shared/report";
import type { Session } from "../../../shared/run/session";
import { poll } from "../../../shared/server/polling";
import comparisonStyle from "../../../shared/style/comparison.css";
import viewStyle from "../../../shared/style/view.css";
import { Request } from "../../../shared/widgets/request";
import { conditionsText, parseConditions } from "./conditions";
import { Form } from "./form";
import { Prediction } from "./prediction";
import { UsualConditions } from "./usual_conditions";
import sheet from "./what_if.css";

addStyle(viewStyle);
addStyle(comparisonStyle);
addStyle(sheet);

interface Props {
  readonly session: Session;
  readonly entry: RunEntry;
  readonly report: Report;
  readonly conditions: string | undefined; // as the address spells them
}

export function WhatIfView({ session, entry, report, conditions: requestedText }: Props) {
  const conditions = parseConditions(requestedText);
  const text = conditionsText(conditions);
  const show = (cause: string) => {
    session.open("diagnosis");
    scrollToCause(cause);
  };
  return (
    <div class="comparison what-if">
      <section>
        <h2>What if this run had…</h2>
        <p class="measure muted">
          Predicts the step time after one or several changes by replaying this recording, what would limit it then, and what to fix first
          so that the change pays off. Empty fields stay as recorded.
        </p>
        <Form client={session.client} device={report.device?.name ?? ""} conditions={conditions} predict={(changed) => session.predict(conditionsText(changed))} />
      </section>
      <Request
        subject={`${entry.id} what_if ${text}`}
        version={report}
        waiting="Replaying this recording under other conditions…"
        send={(signal, onProgress) => poll(() => session.client.whatIf(entry.id, text, signal), signal, onProgress)}
      >
        {({ what_if: prediction, table }) =>
          prediction ? (
            <Prediction prediction={prediction} report={report} show={show} />
          ) : table ? (
            <UsualConditions table={table} predict={(changed) => session.predict(changed)} />
          ) : (
            <p>The server’s response contains no prediction. Reload the page: it may be older than the server.</p>
          )
        }
      </Request>
    </div>
  );
}
