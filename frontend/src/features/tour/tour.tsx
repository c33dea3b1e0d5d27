// A strip that leads through a recording and the same training with the fix, in six steps. Only an address with both
// recordings asks for it, as the one that the demo prints.
import { useEffect, useState } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { Session } from "../../shared/run/session";
import type { View } from "../../shared/run/views";
import type { TourRuns } from "./runs";
import sheet from "./tour.css";

addStyle(sheet);

interface Step {
  readonly title: string;
  readonly text: string;
  readonly view: View;
  /** What the step is about, in the page. */
  readonly target: string;
}

export const STEPS: readonly Step[] = [
  {
    title: "The action",
    text: "The first line says what to change first, and how much faster this training will be.",
    view: "diagnosis",
    target: ".headline h1",
  },
  {
    title: "The account",
    text: "All of the step's time, by what limits it. The shares sum to one. Hatched time is time in which nothing useful is computed.",
    view: "diagnosis",
    target: "#panel .account",
  },
  {
    title: "The line",
    text: "Each finding names the line of the program that costs the time, and the code of the fix.",
    view: "diagnosis",
    target: "#panel [data-cause] .places",
  },
  {
    title: "The gain",
    text: "The gain is simulated on this recording before it is promised. The interval says how certain it is.",
    view: "diagnosis",
    target: "#panel [data-cause] .cost-and-gain",
  },
  {
    title: "The fixed run",
    text: "The same training with the fix: where the time went, and what the prediction had said.",
    view: "compare",
    target: "#panel",
  },
  {
    title: "What if",
    text: "The same recording on another GPU, with another batch, or with more workers.",
    view: "whatif",
    target: "#panel",
  },
];
const COMPARED = STEPS.findIndex(({ view }) => view === "compare");

interface TourProps {
  readonly runs: TourRuns;
  readonly session: Session;
  readonly end: () => void;
}

export function Tour({ runs, session, end }: TourProps) {
  const [number, setNumber] = useState(0);
  const step = STEPS[number];
  useEffect(() => step && mark(step.target), [number]);
  if (!step) return null;

  const show = (next: number) => {
    if (next === COMPARED) {
      session.choose(runs.after, "compare");
      session.compare(runs.before);
    } else session.choose(runs.before, STEPS[next]?.view);
    setNumber(next);
  };
  return (
    <section class="tour" aria-label="Tour of a recording">
      <ol>
        {STEPS.map(({ title }, index) => (
          <li key={title}>
            <button type="button" aria-current={index === number ? "step" : undefined} onClick={() => show(index)}>
              {index + 1}. {title}
            </button>
          </li>
        ))}
      </ol>
      <p role="status">{step.text}</p>
      <p class="actions">
        {number > 0 && <button type="button" onClick={() => show(number - 1)}>Back</button>}
        {number < STEPS.length - 1 && <button type="button" class="primary" onClick={() => show(number + 1)}>Next</button>}
        <button type="button" onClick={end}>End the tour</button>
      </p>
    </section>
  );
}

const TIMEOUT_MS = 10_000;
const MARK = "in-tour";

/** Scrolls to an element once it is drawn, and marks it. Returns a function that removes the mark. */
function mark(selector: string): () => void {
  const deadline = performance.now() + TIMEOUT_MS;
  let element: Element | null = null;
  let frame = 0;
  const search = () => {
    element = document.querySelector(selector);
    if (element) {
      element.classList.add(MARK);
      element.scrollIntoView({ block: "center" });
    } else if (performance.now() < deadline) frame = requestAnimationFrame(search);
  };
  frame = requestAnimationFrame(search);
  return () => {
    cancelAnimationFrame(frame);
    element?.classList.remove(MARK);
  };
}
