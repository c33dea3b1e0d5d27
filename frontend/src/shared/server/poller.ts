// Runs rounds of requests one after another: never two at the same time, and none while the tab is hidden.

/** One round; resolves to the milliseconds until the next one. The signal of a cancelled round is aborted. */
export type Round = (signal: AbortSignal) => Promise<number>;

export class Poller {
  private current = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly round: Round) {}

  /** Cancels the current round and starts one at once. */
  now(): void {
    this.pause();
    const { signal } = (this.current = new AbortController());
    void this.round(signal).then((delay) => {
      if (!signal.aborted) this.timer = setTimeout(() => this.now(), delay);
    });
  }

  /** Cancels the current round and starts no other until `now()`. */
  pause(): void {
    this.current.abort();
    clearTimeout(this.timer);
  }
}
