// The recording as it would go under other conditions: what is supposed, and what is foretold of it.
import { settled } from "../../shared/server/polling";
import type { Report, RunEntry } from "../../shared/report";
import type { Session } from "../../app/session";
import { addStyle } from "../../shared/page/style_sheet";
import closer from "../../shared/style/view.css";
import comparison from "../compare/compare.css";
import sheet from "./what_if.css";
import { supposedIn, supposedText } from "./conditions";
import { seekCause } from "../../shared/page/scroll_to_cause";
import { Awaited } from "../../shared/widgets/request";
import { Form } from "./form";
import { Foretold } from "./prediction";

addStyle(closer);
addStyle(comparison);
addStyle(sheet);

interface Props {
  readonly session: Session;
  readonly entry: RunEntry;
  readonly report: Report;
  readonly supposed: string | undefined; // as the address spells it
}

export function WhatIfView({ session, entry, report, supposed }: Props) {
  const asked = supposedIn(supposed);
  const text = supposedText(asked);
  const show = (cause: string) => {
    session.open("diagnosis");
    seekCause(cause);
  };
  return (
    <div class="comparison what-if">
      <section>
        <h2>What if this run had…</h2>
        <p class="measure muted">
          One change or several at once. This recording is replayed under them, and what stays empty stays as it was recorded: the time of a
          step then, what would hold it back, and what to mend first so that the change is not wasted.
        </p>
        <Form client={session.client} device={report.device?.name ?? ""} asked={asked} ask={(changed) => session.suppose(supposedText(changed))} />
      </section>
      {text !== "" && (
        <Awaited
          about={`${entry.id} what_if ${text}`}
          since={report}
          waiting="Replaying this recording under other conditions…"
          ask={(signal, tell) => settled(() => session.client.whatIf(entry.id, text, signal), signal, tell)}
        >
          {({ what_if: told }) => (told ? <Foretold told={told} report={report} show={show} /> : <p>The server’s answer holds no prediction. Reload the page: it may be older than the server.</p>)}
        </Awaited>
      )}
    </div>
  );
}
