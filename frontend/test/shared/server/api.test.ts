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

test("a 202 is pending on every route, and a slice is the bytes of a 200", async () => {
  const pending = () => new Response(JSON.stringify({ state: "analysing", progress: 0.5 }), { status: 202 });
  const broken = new Response(JSON.stringify({ id: "a" }), { status: 202 });
  const refused = new Response("No device is known as x.", { status: 422, headers: { "Content-Type": "text/plain; charset=utf-8" } });
  const { client } = server(pending(), pending(), pending(), new Response("{}"), broken, refused);
  const expected = { kind: "pending", value: { state: "analysing", progress: 0.5 } };
  assert.deepEqual(await client.report("a", never), expected);
  assert.deepEqual(await client.tree("a", "", never), expected);
  assert.deepEqual(await client.slice("a", 0, 1, never), expected);
  const slice = await client.slice("a", 0, 1, never);
  assert.ok(slice.kind === "ok" && slice.value.byteLength === 2);
  assert.equal((await client.tree("a", "", never)).kind, "failed", "a 202 with another body");
  assert.deepEqual(await client.whatIf("a", "device=x", never), { kind: "failed", message: "No device is known as x." });
});
