// Holds the state and notifies the page of changes.
import { reduce, type Action, type State } from "./state";

export class Store {
  private readonly listeners = new Set<(state: State) => void>();

  constructor(public state: State) {}

  dispatch(action: Action): void {
    const next = reduce(this.state, action);
    if (next === this.state) return;
    this.state = next;
    for (const listener of this.listeners) listener(next);
  }

  subscribe(listener: (state: State) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
