/** Checks the JSON form of messages, with texts that grpc-gateway in etcd 3.4 writes and reads. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as of from "./messages.ts";
import type { Message } from "./protobuf.ts";
import { fromJson, JsonObjects, toJson } from "./protobuf-json.ts";

const written = <T>(message: Message<T>, value: Partial<T>): unknown => toJson(message, value);

test("writes integers of 64 bits as strings, bytes as base64, enums by name, and omits defaults", () => {
  const kv = { key: "foo\xff", create_revision: 2, mod_revision: 2 ** 53 - 1, version: 1, value: "", lease: "-5" };
  expect(
    written(of.watchResponse, { watch_id: 0, created: true, events: [{ type: 1, kv, prev_kv: null }], header: {} }),
  ).toEqual({
    header: {},
    created: true,
    events: [
      {
        type: "DELETE",
        kv: { key: "Zm9v/w==", create_revision: "2", mod_revision: "9007199254740991", version: "1", lease: "-5" },
      },
    ],
  });
  expect(written(of.rangeResponse, { kvs: [], count: 0, more: false })).toEqual({});
});

test("reads both forms of a field's name, numbers as text, enums by name or number, and ignores unknown fields", () => {
  const text = `{"key":"Zm9v","rangeEnd":"Zm9w","sort_order":"DESCEND","sortTarget":3,"limit":"10","revision":7,
    "keysOnly":true,"min_mod_revision":null,"unknown":[{}]}`;
  expect(fromJson(of.rangeRequest, text)).toMatchObject({
    key: "foo",
    range_end: "fop",
    sort_order: 2,
    sort_target: 3,
    limit: 10,
    revision: 7,
    keys_only: true,
    min_mod_revision: 0,
    count_only: false,
  });
});

test("reads ids exactly, whether they are numbers or text", () => {
  for (const id of ["1418812207347437338", "-9223372036854775808", "9007199254740993"])
    for (const text of [id, `"${id}"`]) expect(fromJson(of.leaseRequest, `{"ID":${text}}`)).toEqual({ ID: id });
  expect(
    fromJson(of.putRequest, '{"key":"MTIzNDU2Nzg5MDEyMzQ1Njc4","value":"IjEyMzQ1Njc4OTAxMjM0NTY3OCI="}'),
  ).toMatchObject({ key: "123456789012345678", value: '"123456789012345678"' });
});

test.each([
  ["{", "invalid JSON"],
  ["[]", "expected an object, got []"],
  ["null", "expected an object, got null"],
  ['{"key":5}', "expected bytes in base64, got 5"],
  ['{"key":"%%%"}', 'expected bytes in base64, got "%%%"'],
  ['{"key":"AA="}', 'expected bytes in base64, got "AA="'],
  ['{"limit":"x"}', 'expected an integer, got "x"'],
  ['{"limit":1.5}', "expected an integer, got 1.5"],
  ['{"limit":"9223372036854775808"}', 'expected an integer of 64 bits, got "9223372036854775808"'],
  ['{"sort_order":"UP"}', 'expected one of NONE, ASCEND, DESCEND, got "UP"'],
  ['{"serializable":"yes"}', 'expected true or false, got "yes"'],
])("refuses %s", (text, problem) => {
  expect(() => fromJson(of.rangeRequest, text)).toThrow(problem);
});

test("refuses messages that are nested too deep", () => {
  const nested = `${'{"success":[{"request_txn":'.repeat(50)}{}${"}]}".repeat(50)}`;
  expect(() => fromJson(of.txnRequest, nested)).toThrow("expected messages nested at most 32 deep");
  expect(() => fromJson(of.txnRequest, `{"a":${"[".repeat(1_000_000)}`)).toThrow(RangeError);
});

test("reading returns the message that was written", () => {
  const keyValue = fc.record({
    key: fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)) }),
    create_revision: fc.maxSafeNat(),
    mod_revision: fc.maxSafeNat(),
    version: fc.maxSafeNat(),
    value: fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)) }),
    lease: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  });
  fc.assert(
    fc.property(keyValue, (value) => {
      expect(fromJson(of.keyValue, JSON.stringify(toJson(of.keyValue, value)))).toEqual(value);
    }),
  );
});

test("objects are split wherever the bytes of a body are cut", () => {
  const separators = fc.array(fc.constantFrom("", " ", "\n"), { minLength: 1 });
  fc.assert(
    fc.property(fc.array(fc.object()), separators, fc.array(fc.nat(7)), (values, between, cuts) => {
      const texts = values.map((value) => JSON.stringify(value));
      const body = Buffer.from(texts.map((text, at) => text + between[at % between.length]).join(""));
      const objects = new JsonObjects(1_000_000);
      const found: string[] = [];
      for (let at = 0, turn = 0; at < body.length; turn++) {
        const length = 1 + (cuts[turn % Math.max(1, cuts.length)] ?? body.length);
        found.push(...objects.take(body.subarray(at, at + length)));
        at += length;
      }
      expect(found.map((text) => text.trim())).toEqual(texts);
      expect(objects.rest()).toBe("");
    }),
  );
});

test("an object that is too long is refused before it is complete", () => {
  const objects = new JsonObjects(10);
  expect(objects.take(Buffer.from('{"a":1}{"b'))).toEqual(['{"a":1}']);
  expect(() => objects.take(Buffer.from("bbbbbbbbbb"))).toThrow("request is too large");
});
