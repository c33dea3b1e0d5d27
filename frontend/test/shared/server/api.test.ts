import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../../../src/shared/server/api";
import { done, list } from "../../recordings";

const json = (value: unknown, etag = '"1"') => new Response(JSON.stringify(value), { headers: { ETag: etag } });
const never = new AbortController().signal;

/** A server that sends these responses one after another, and the requests that it received. */
function server(...answers: readonly (Response | Error)[]) {
  const requests: { readonly url: string; readonly tag: string | null }[] = [];
  const fetcher: typeof fetch = async (url, init) => {
    requests.push({ url: String(url), tag: new Headers(init?.headers).get("If-None-Match") });
    const answer = answers[requests.length - 1];
    if (answer === undefined || answer instanceof Error) throw answer ?? new TypeError("too many requests");
    return answer;
  };
  return { client: new Client(fetcher), requests };
}

test("an unchanged response is the same object again", async () => {
  const { client, requests } = server(json(list()), new Response(null, { status: 304 }));
  const first = await client.runs(never);
  const second = await client.runs(never);
  assert.deepEqual(requests.map(({ tag }) => tag), [null, '"1"']);
  assert.ok(first.kind === "ok" && second.kind === "ok");
  assert.equal(second.value, first.value);
});

test("addresses are relative and ids are escaped", async () => {
  const { client, requests } = server(json(done("a")), json(list()));
  await client.report("a&b/../#", never);
  await client.runs(never);
  assert.deepEqual(requests.map(({ url }) => url), ["report?id=a%26b%2F..%2F%23", "runs"]);
});

test("a series, a prediction and the devices are requested with the parameters of the routes", async () => {
  const series = { ids: ["a", "b"], state: "done", progress: 1, problem: "" };
  const { client, requests } = server(json(series), json(done("a")), json({ names: ["H200 SXM"] }), json({ id: "a", state: "done" }), json({ names: "x" }));
  assert.equal((await client.series(["a", "b&c"], never)).kind, "ok");
  assert.equal((await client.whatIf("a&b", "device=NVIDIA+H200&workers=4", never)).kind, "ok");
  assert.deepEqual(await client.devices(never), { kind: "ok", value: { names: ["H200 SXM"] } });
  assert.equal((await client.series(["a", "b"], never)).kind, "failed", "that is no series");
  assert.equal((await client.devices(never)).kind, "failed");
  assert.deepEqual(requests.slice(0, 3).map(({ url }) => url), ["series?id=a&id=b%26c", "what_if?id=a%26b&device=NVIDIA+H200&workers=4", "devices"]);
});

test("the server's text is the message of a failure", async () => {
  const text = new Response("No recording has the id x.\n", { status: 404, headers: { "Content-Type": "text/plain; charset=utf-8" } });
  const page = new Response("<h1>oops</h1>", { status: 500, headers: { "Content-Type": "text/html" } });
  const { client } = server(text, page, new TypeError("Failed to fetch"));
  assert.deepEqual(await client.report("x", never), { kind: "failed", message: "No recording has the id x." });
  assert.deepEqual(await client.runs(never), { kind: "failed", message: "The server answered 500." });
  assert.deepEqual(await client.runs(never), { kind: "failed", message: "TensorBoard could not be reached: it was stopped, or the connection to it is lost." });
});

test("JSON of an unknown form is a failure", async () => {
  const { client } = server(json({ runs: "none" }), json(null), json([]));
  assert.equal((await client.runs(never)).kind, "failed");
  assert.equal((await client.runs(never)).kind, "failed");
  assert.equal((await client.report("x", never)).kind, "failed");
});

test("a cancelled request is neither data nor a failure", async () => {
  const off = new AbortController();
  off.abort();
  const { client } = server(new DOMException("aborted", "AbortError"));
  assert.deepEqual(await client.runs(off.signal), { kind: "aborted" });
});

test("the latest reports are cached", async () => {
  const ids = Array.from({ length: 30 }, (_, index) => `r${index}`);
  const { client } = server(...ids.map((id) => json(done(id))));
  for (const id of ids) await client.report(id, never);
  assert.equal(client.cachedReport("r29")?.id, "r29");
  assert.equal(client.cachedReport("r0"), undefined);
});

const pending = (value: unknown, status: number) => new Response(JSON.stringify(value), { status });

test("a slice is requested until its bytes are there, whether the server says 202 or sends a short status", async () => {
  const trace = JSON.stringify({ traceEvents: [{ name: "x".repeat(5_000) }] });
  for (const first of [pending({ state: "analysing", progress: 0.5 }, 202), pending({ id: "a", state: "waiting", progress: 0, problem: "" }, 200)]) {
    const { client, requests } = server(first, new Response(trace));
    const result = await client.slice("a", 1, 2, never);
    assert.ok(result.kind === "ok");
    assert.equal(new TextDecoder().decode(result.value), trace);
    assert.equal(requests.length, 2);
  }
});

test("a short trace is a trace, and a failed slice has its reason", async () => {
  const { client } = server(pending({ traceEvents: [] }, 200), pending({ id: "a", state: "failed", progress: 0, problem: "No such file." }, 200));
  const short = await client.slice("a", 1, 2, never);
  assert.ok(short.kind === "ok" && short.value.byteLength > 0);
  assert.deepEqual(await client.slice("a", 1, 2, never), { kind: "failed", message: "No such file." });
});

test("202 is a status, whatever else it contains", async () => {
  const { client } = server(pending({ state: "analysing", progress: 0.25 }, 202), pending({ progress: 1 }, 202));
  assert.deepEqual(await client.timeline("a", 1, 2, 100, never), { kind: "ok", value: { state: "analysing", progress: 0.25, problem: "" } });
  assert.equal((await client.timeline("a", 1, 2, 100, never)).kind, "failed");
});
