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

test("the next round starts after the delay that the previous one returned", async () => {
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

test("now() cancels the current round, whose end then starts no other", async () => {
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

test("a paused poller starts no round, whether a round or a delay was active", async () => {
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
