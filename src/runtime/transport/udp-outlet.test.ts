import { afterEach, describe, expect, test } from "vitest";
import { type FaultGate, type Faults, faultGate, noFaults } from "../fault-gate.ts";
import { createLog } from "../log.ts";
import { type Counts, newCounts } from "../metrics.ts";
import { DatagramFormat } from "./udp-datagram.ts";
import { UdpOutlet } from "./udp-outlet.ts";

const MAX_HELD = 10_000;
const body = Buffer.from("body");
/** Far longer than the test. */
const delayed: Faults = { ...noFaults, delayMs: { min: 600_000, max: 600_000 } };

let gate: FaultGate;
let counts: Counts;
let lines: string[];
let outlet: UdpOutlet;
afterEach(() => outlet.close());

/** Of node 0, to nodes 1 and 2. */
function begin(faults: Faults): void {
  [gate, counts, lines] = [faultGate(), newCounts(), []];
  gate.faults = faults;
  const format = new DatagramFormat({ cluster: "test", protocol: 1, key: null });
  const log = createLog((_level, line) => lines.push(line));
  outlet = new UdpOutlet({ self: 0, peers: [1, 2], run: 1, format, gate, counts, log, put: () => undefined });
}

describe("what the fault gate holds back", () => {
  test("is bounded: what is more is lost for its receiver, and that is said once", () => {
    begin(delayed);
    for (let i = 0; i < MAX_HELD / 2; i++) expect(outlet.transmit("messages", body).size).toBe(0);
    expect(lines).toEqual([]);
    for (let i = 0; i < 3; i++) {
      expect([...outlet.transmit("messages", body)]).toEqual([
        [1, "overflow"],
        [2, "overflow"],
      ]);
    }
    expect(lines).toEqual([`the fault gate holds back ${MAX_HELD} datagrams: what is more is dropped`]);
    expect(counts.datagramsSent).toBe(0);
  });

  test("keeps nothing from a receiver that nothing is held back from", () => {
    begin(delayed);
    for (let i = 0; i < MAX_HELD / 2; i++) outlet.transmit("messages", body);
    gate.faults = { ...noFaults, datagrams: { dropRate: 0, duplicateRate: 1, reorderRate: 0 } };
    expect(outlet.transmit("messages", body).size).toBe(0); // Only the copies are dropped.
    expect(counts.datagramsSent).toBe(1);
  });
});
