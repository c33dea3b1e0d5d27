// Scrolls to the card of a cause once the diagnosis that contains it is drawn.

const TIMEOUT_MS = 5_000;

/** Gives up after a while: another recording's report may take long, and the user may have left. */
export function scrollToCause(cause: string): void {
  const deadline = performance.now() + TIMEOUT_MS;
  const search = () => {
    const cards = document.querySelectorAll<HTMLElement>("#panel [data-cause]");
    const card = [...cards].find(({ dataset }) => dataset["cause"] === cause);
    if (!card) {
      if (performance.now() < deadline) requestAnimationFrame(search);
      return;
    }
    card.closest("details")?.setAttribute("open", ""); // further findings are folded
    card.tabIndex = -1;
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "center" });
  };
  requestAnimationFrame(search);
}
