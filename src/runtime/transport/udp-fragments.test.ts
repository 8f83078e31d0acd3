import { describe, expect, test } from "vitest";
import { MalformedBytes } from "../wire.ts";
import { type FragmentLimits, Fragments } from "./udp-fragments.ts";

const limits: FragmentLimits = {
  maxMessageBytes: 1_000,
  maxBytes: 2_000,
  minFragmentBytes: 1,
  maxMessages: 5,
  maxAge: 2,
};
const bytes = (length: number, fill = 0): Buffer => Buffer.alloc(length, fill);

describe("fragments of a message", () => {
  test("form the message, in any order and with any repetition", () => {
    const fragments = new Fragments(limits);
    expect(fragments.take(7, 2, 3, Buffer.from("c"))).toBeNull();
    expect(fragments.take(7, 0, 3, Buffer.from("a"))).toBeNull();
    expect(fragments.take(7, 0, 3, Buffer.from("a"))).toBeNull();
    expect(fragments.take(7, 1, 3, Buffer.from("b"))?.toString()).toBe("abc");
  });

  test("do not form the message again if repeated, and do not count as a loss", () => {
    const fragments = new Fragments(limits);
    fragments.take(1, 0, 2, bytes(1));
    expect(fragments.take(1, 1, 2, bytes(1))).not.toBeNull();
    expect([fragments.take(1, 0, 2, bytes(1)), fragments.take(1, 1, 2, bytes(1))]).toEqual([null, null]);
    for (let i = 0; i < 3; i++) fragments.age();
    expect(fragments.abandoned).toBe(0);
  });

  test("do not keep the datagram that they came in", () => {
    const fragments = new Fragments(limits);
    const datagram = bytes(2, 1);
    fragments.take(1, 0, 2, datagram.subarray(0, 1));
    datagram.fill(9);
    expect(fragments.take(1, 1, 2, datagram.subarray(1))?.toString("hex")).toBe("0109");
  });

  test("are given up when others do not arrive", () => {
    const fragments = new Fragments(limits);
    fragments.take(1, 0, 2, bytes(10));
    for (let i = 0; i < 2; i++) fragments.age();
    expect(fragments.abandoned).toBe(0);
    fragments.age();
    expect(fragments.abandoned).toBe(1);
    expect(fragments.take(1, 1, 2, bytes(10))).toBeNull();
  });

  test("are limited in number and bytes: the oldest message is dropped first", () => {
    const few = new Fragments(limits);
    for (let number = 1; number <= 6; number++) few.take(number, 0, 2, bytes(1));
    expect(few.abandoned).toBe(1);
    expect(few.take(2, 1, 2, bytes(1))).not.toBeNull();

    const long = new Fragments(limits);
    for (let number = 1; number <= 3; number++) long.take(number, 0, 2, bytes(900));
    expect(long.abandoned).toBe(1);
    expect(long.take(3, 1, 2, bytes(100))).toHaveLength(1_000);
  });

  test("are few, since only the last of a message may be short and messages have few of them", () => {
    const fragments = new Fragments({ ...limits, minFragmentBytes: 400 });
    expect(() => fragments.take(1, 0, 3, bytes(399))).toThrow("fragment 0 of 3 of a message has 399 bytes");
    expect(() => fragments.take(1, 3, 4, bytes(1))).toThrow("fragment 3 of 4 of a message has 1 bytes");
    for (let index = 0; index < 2; index++) expect(fragments.take(1, index, 3, bytes(400))).toBeNull();
    expect(fragments.take(1, 2, 3, bytes(1))).toHaveLength(801);
  });

  test.each<[string, [number, number, number, number]]>([
    ["of one", [1, 0, 1, 5]],
    ["beyond the last", [1, 2, 2, 5]],
    ["without bytes", [1, 0, 2, 0]],
    ["of more than there can be", [1, 0, 1_001, 5]],
  ])("%s are malformed", (_what, [number, index, count, length]) => {
    expect(() => new Fragments(limits).take(number, index, count, bytes(length))).toThrow(MalformedBytes);
  });

  test("that contradict each other, or are too long together, are malformed", () => {
    const fragments = new Fragments(limits);
    fragments.take(1, 0, 3, bytes(600));
    expect(() => fragments.take(1, 1, 4, bytes(1))).toThrow(
      "a message has 4 fragments, but earlier fragments declared 3",
    );
    expect(() => fragments.take(1, 1, 3, bytes(600))).toThrow("more than 1000 bytes");
  });
});
