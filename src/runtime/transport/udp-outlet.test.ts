import { afterEach, describe, expect, test } from "vitest";
import { type FaultInjector, type Faults, faultInjector, noFaults } from "../fault-injector.ts";
import { createLog } from "../log.ts";
import { type Counts, newCounts } from "../metrics.ts";
import { realPlatform } from "../platform/real.ts";
import { DatagramFormat } from "./udp-datagram.ts";
import { UdpOutlet } from "./udp-outlet.ts";

const MAX_HELD = 10_000;
const body = Buffer.from("body");
/** Delays far longer than the test. */
const delayed: Faults = { ...noFaults, delayMs: { min: 600_000, max: 600_000 } };

let injector: FaultInjector;
let counts: Counts;
let lines: string[];
let outlet: UdpOutlet;
afterEach(() => outlet.close());

/** Creates the outlet for node 0, which sends to nodes 1 and 2. */
function begin(faults: Faults): void {
  [injector, counts, lines] = [faultInjector(realPlatform.random), newCounts(), []];
  injector.faults = faults;
  const format = new DatagramFormat({ cluster: "test", protocol: 1, key: null });
  const log = createLog((_level, line) => lines.push(line));
  outlet = new UdpOutlet({
    timers: realPlatform.timers,
    self: 0,
    peers: [1, 2],
    run: 1,
    format,
    injector,
    counts,
    log,
    put: () => undefined,
  });
}

describe("datagrams that the fault injector delays", () => {
  test("are bounded: the excess is lost for its receiver, and logged once", () => {
    begin(delayed);
    for (let i = 0; i < MAX_HELD / 2; i++) expect(outlet.transmit("messages", body).size).toBe(0);
    expect(lines).toEqual([]);
    for (let i = 0; i < 3; i++) {
      expect([...outlet.transmit("messages", body)]).toEqual([
        [1, "overflow"],
        [2, "overflow"],
      ]);
    }
    expect(lines).toEqual([`the fault injector holds back ${MAX_HELD} datagrams: further ones are dropped`]);
    expect(counts.datagramsSent).toBe(0);
  });

  test("do not affect other receivers", () => {
    begin(delayed);
    for (let i = 0; i < MAX_HELD / 2; i++) outlet.transmit("messages", body);
    injector.faults = { ...noFaults, datagrams: { dropRate: 0, duplicateRate: 1, reorderRate: 0 } };
    expect(outlet.transmit("messages", body).size).toBe(0); // Only the copies are dropped.
    expect(counts.datagramsSent).toBe(1);
  });
});
