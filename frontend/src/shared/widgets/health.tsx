// What is wrong with a recording, with the code that fixes each defect.
import type { Health as HealthMessage } from "../report";
import { title } from "../text/identifier";
import { reason } from "../text/vocabulary";
import { CodeBlock } from "./code_block";

export function Health({ health: { status, reasons } }: { health: HealthMessage }) {
  if (reasons.length === 0) return null;
  const judged = status === "ok" || status === "degraded";
  return (
    <section class="health">
      <h2 class={judged ? "visually-hidden" : undefined}>{judged ? "Limitations of this recording" : "Why there is no verdict"}</h2>
      {reasons.map(({ code, detail, fix }, index) => (
        <details key={`${code} ${index}`} open={!judged}>
          <summary>
            <strong>{title(reason(code))}.</strong> {detail}
          </summary>
          {fix && (
            <>
              <p class="muted">To fix it:</p>
              <CodeBlock text={fix} label={`code that fixes “${reason(code)}”`} />
            </>
          )}
        </details>
      ))}
    </section>
  );
}
