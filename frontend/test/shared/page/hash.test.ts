import assert from "node:assert/strict";
import { test } from "node:test";
import { valueIn, withValue } from "../../../src/shared/page/hash";

const KEY = "p.tb_bottleneck.run";

test("a key is read out of TensorBoard's fragment", () => {
  const hash = "#tb_bottleneck&p.scalars.run=other&p.tb_bottleneck.run=resnet%2Fslow%2Fa%20b%26c%3D1.json";
  assert.equal(valueIn(hash, KEY), "resnet/slow/a b&c=1.json");
});

test("a key is not found in another one that contains it", () => {
  assert.equal(valueIn("#x.p.tb_bottleneck.run=1&p.tb_bottleneck.runs=2", KEY), undefined);
  assert.equal(valueIn("", KEY), undefined);
});

test("invalid escapes are no value and no exception", () => {
  assert.equal(valueIn("#p.tb_bottleneck.run=%E0%A4%A", KEY), undefined);
});

test("a written key can be read, and all others stay", () => {
  const hash = withValue("#tb_bottleneck&p.tb_bottleneck.run=old&p.scalars.x=1", KEY, "größe/&=#%.json");
  assert.equal(valueIn(hash, KEY), "größe/&=#%.json");
  assert.equal(valueIn(hash, "p.scalars.x"), "1");
  assert.ok(hash.startsWith("#tb_bottleneck&"));
  assert.equal(hash.split(KEY).length, 2, "the key is there once");
});

test("a key is written into an empty fragment", () => {
  assert.equal(withValue("", KEY, "a/b"), "#p.tb_bottleneck.run=a%2Fb");
});
