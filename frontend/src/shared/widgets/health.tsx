// What is wrong with the recording, and the line that mends each.
import type { Health as Words } from "../report";
import { title } from "../text/names";
import { reason } from "../text/vocabulary";
import { Code } from "./code_block";

export function Health({ health: { status, reasons } }: { health: Words }) {
  if (reasons.length === 0) return null;
  const judged = status === "ok" || status === "degraded";
  return (
    <section class="health">
      <h2 class={judged ? "spoken" : undefined}>{judged ? "What this recording leaves open" : "Why there is no verdict"}</h2>
      {reasons.map(({ code, detail, fix }, index) => (
        <details key={`${code} ${index}`} open={!judged}>
          <summary>
            <strong>{title(reason(code))}.</strong> {detail}
          </summary>
          {fix && (
            <>
              <p class="muted">To mend it:</p>
              <Code text={fix} label={`what mends “${reason(code)}”`} />
            </>
          )}
        </details>
      ))}
    </section>
  );
}
