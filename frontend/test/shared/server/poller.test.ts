import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Poller } from "../../../src/shared/server/poller";

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A poller whose rounds end when the test says so. */
function polling() {
  const rounds: { readonly signal: AbortSignal; readonly end: (delay: number) => void }[] = [];
  const poller = new Poller((signal) => new Promise((end) => rounds.push({ signal, end })));
  return { poller, rounds };
}

test("the next round begins after the delay that the last one asked for, and not before that one has ended", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { poller, rounds } = polling();
  poller.now();
  mock.timers.tick(100_000);
  assert.equal(rounds.length, 1);
  rounds[0]!.end(1_000);
  await settle();
  mock.timers.tick(999);
  assert.equal(rounds.length, 1);
  mock.timers.tick(1);
  assert.equal(rounds.length, 2);
  poller.pause();
  mock.timers.reset();
});

test("asking at once calls off the round under way, whose end then starts nothing", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { poller, rounds } = polling();
  poller.now();
  poller.now();
  assert.ok(rounds[0]!.signal.aborted);
  assert.ok(!rounds[1]!.signal.aborted);
  rounds[0]!.end(1);
  await settle();
  mock.timers.tick(100_000);
  assert.equal(rounds.length, 2);
  poller.pause();
  mock.timers.reset();
});

test("a paused poller asks nothing, whether a round or a wait was under way", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { poller, rounds } = polling();
  poller.now();
  rounds[0]!.end(10);
  await settle();
  poller.pause();
  mock.timers.tick(100_000);
  assert.equal(rounds.length, 1);
  poller.now();
  poller.pause();
  rounds[1]!.end(10);
  await settle();
  mock.timers.tick(100_000);
  assert.equal(rounds.length, 2);
  mock.timers.reset();
});
