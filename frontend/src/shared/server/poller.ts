// Runs one round of questions after another: never two at once, none while nobody looks.

/** One round; resolves to the milliseconds until the next. A round that is called off sees its signal aborted. */
export type Round = (signal: AbortSignal) => Promise<number>;

export class Poller {
  private current = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly round: Round) {}

  /** Calls off what is under way and asks at once. */
  now(): void {
    this.pause();
    const { signal } = (this.current = new AbortController());
    void this.round(signal).then((delay) => {
      if (!signal.aborted) this.timer = setTimeout(() => this.now(), delay);
    });
  }

  /** Calls off what is under way and asks no more, until `now()`. */
  pause(): void {
    this.current.abort();
    clearTimeout(this.timer);
  }
}
