// Brings a cause's card into sight once the diagnosis that holds it is drawn.

const PATIENCE_MS = 5_000;

/** Ends when the card is found, or after a while: another recording's report may take long, and the user may be elsewhere. */
export function seekCause(cause: string): void {
  const giveUp = performance.now() + PATIENCE_MS;
  const look = () => {
    const cards = document.querySelectorAll<HTMLElement>("#panel [data-cause]");
    const card = [...cards].find(({ dataset }) => dataset["cause"] === cause);
    if (!card) {
      if (performance.now() < giveUp) requestAnimationFrame(look);
      return;
    }
    card.tabIndex = -1;
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "center" });
  };
  requestAnimationFrame(look);
}
