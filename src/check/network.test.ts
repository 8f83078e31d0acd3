import { describe, expect, it } from "vitest";
import { type NetworkKind, network } from "./network.ts";

/** Returns every possible order of delivery of these messages, as text. */
function orders(kind: NetworkKind, sent: readonly (readonly [from: number, message: number])[]): string[] {
  const net = network(kind);
  let content = 0;
  for (const [from, message] of sent) content = net.add(content, net.envelopeId(from, message));
  const finish = (rest: number, so: string): string[] =>
    rest === 0
      ? [so]
      : net.deliveries(rest).flatMap(({ envelope, rest: left }) => {
          const { from, message } = net.envelopeOf(envelope);
          return finish(left, `${so} ${from}:${message}`);
        });
  return finish(content, "").sort();
}

const sent = [
  [1, 10],
  [2, 20],
  [1, 11],
] as const;

describe("network semantics", () => {
  it("inbox: the order of sending, across all senders", () => {
    expect(orders("inbox", sent)).toEqual([" 1:10 2:20 1:11"]);
  });

  it("fifo: each sender's order, with senders interleaved freely", () => {
    expect(orders("fifo", sent)).toEqual([" 1:10 1:11 2:20", " 1:10 2:20 1:11", " 2:20 1:10 1:11"]);
  });

  it("bag: any order, and equal messages are one choice", () => {
    expect(orders("bag", sent)).toHaveLength(6);
    expect(
      orders("bag", [
        [1, 10],
        [1, 10],
      ]),
    ).toEqual([" 1:10 1:10"]);
  });

  it("contents that allow the same deliveries are equal", () => {
    const net = network("fifo");
    const [a, b] = [net.envelopeId(1, 10), net.envelopeId(2, 20)];
    expect(net.add(net.add(0, a), b)).toBe(net.add(net.add(0, b), a));
  });
});
