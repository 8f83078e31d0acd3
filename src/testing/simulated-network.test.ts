import { describe, expect, test } from "vitest";
import { random } from "../core/random.ts";
import type { Network, Stream } from "../runtime/platform/platform.ts";
import { type Machine, SimulatedNetwork } from "./simulated-network.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { VirtualTime } from "./virtual-time.ts";

const PORT = 7_100;

interface Side {
  machine: { id: number; host: string; isUp: boolean };
  process: SimulatedProcess;
  network: Network;
}

/** Creates two machines, and records the bytes that a stream delivers to the second one, with their arrival times. */
function twoMachines(seed = 1) {
  const time = new VirtualTime();
  const chance = random(seed);
  const machines: Machine[] = [1, 2].map((id) => ({ id, host: `10.0.0.${id}`, isUp: true }));
  const network = new SimulatedNetwork(time, machines, chance);
  const [one, two] = machines.map((machine) => {
    const process = new SimulatedProcess(time, { speed: 1, aheadMs: 0 }, chance.stream(`p${machine.id}`));
    return { machine, process, network: network.of(machine, process) };
  }) as [Side, Side];
  const seen: string[] = [];
  const accepted: Stream[] = [];
  const note = (what: string): void => void seen.push(what);
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => void time.after(ms, resolve));
  async function listen(): Promise<void> {
    const listener = two.network.listener({
      tls: null,
      handshakeTimeoutMs: 1_000,
      maxStreams: 4,
      onMade: () => note("made"),
      onReady(stream) {
        accepted.push(stream);
        watch(stream, "two", note);
      },
      onDropped: () => note("dropped"),
      onTlsRefused() {},
      onError() {},
    });
    await listener.open({ host: "10.0.0.2", port: PORT });
  }
  function dial(): Stream {
    const stream = one.network.dial({ host: "10.0.0.2", port: PORT }, null, () => note("one ready"));
    watch(stream, "one", note);
    return stream;
  }
  const run = (body: () => Promise<void>): Promise<void> => time.drive(body, 1e7);
  return { time, network, one, two, seen, accepted, sleep, listen, dial, run };
}

function watch(stream: Stream, name: string, note: (what: string) => void): void {
  stream.on("data", (chunk) => note(`${name} reads ${chunk.length < 40 ? chunk : chunk.length}`));
  stream.on("drain", () => note(`${name} may write`));
  stream.on("error", ({ code }) => note(`${name} ${code}`));
  stream.on("close", () => note(`${name} closed`));
}

const text = (words: string): Buffer => Buffer.from(words);

describe("a simulated stream", () => {
  test("carries bytes in order in both directions", async () => {
    const { seen, accepted, sleep, listen, dial, run } = twoMachines();
    await run(async () => {
      await listen();
      const stream = dial();
      await sleep(10);
      for (const word of ["a", "b", "c"]) stream.write(text(word));
      accepted[0]?.write(text("z"));
      await sleep(10);
    });
    expect(seen.filter((line) => line.startsWith("two reads"))).toEqual(["two reads a", "two reads b", "two reads c"]);
    expect(seen).toContain("one reads z");
    expect(seen.indexOf("made")).toBeLessThan(seen.indexOf("one ready"));
  });

  test("is refused if no process listens", async () => {
    const { seen, sleep, dial, run } = twoMachines();
    await run(async () => {
      dial();
      await sleep(10);
    });
    expect(seen).toEqual(["one ECONNREFUSED", "one closed"]);
  });

  test("stalls during a cut, and loses nothing: writes arrive once a packet gets through again", async () => {
    const { network, seen, sleep, listen, dial, run } = twoMachines();
    await run(async () => {
      await listen();
      const stream = dial();
      await sleep(10);
      const mend = network.link(1, 2).cut();
      stream.write(text("a"));
      stream.write(text("b"));
      await sleep(5_000);
      expect(seen.filter((line) => line.includes("reads"))).toEqual([]);
      mend();
      await sleep(10_000);
    });
    expect(seen.filter((line) => line.includes("reads"))).toEqual(["two reads a", "two reads b"]);
  });

  test("may be cut in one direction: then no new connection works, but an existing one continues one way", async () => {
    const { network, seen, accepted, sleep, listen, dial, run } = twoMachines();
    await run(async () => {
      await listen();
      const stream = dial();
      await sleep(10);
      network.link(2, 1).cut();
      stream.write(text("there"));
      accepted[0]?.write(text("back"));
      dial();
      await sleep(100);
    });
    expect(seen.filter((line) => /reads|ready/.test(line))).toEqual(["one ready", "two reads there"]);
  });

  test("closes when the other process is killed; after a power failure, only once the machine is back", async () => {
    for (const hasPower of [true, false]) {
      const { network, two, seen, sleep, listen, dial, run } = twoMachines();
      await run(async () => {
        await listen();
        const stream = dial();
        await sleep(10);
        two.process.die();
        two.machine.isUp = hasPower;
        network.processDied(two.process, hasPower);
        await sleep(100);
        expect(seen.includes("one closed")).toBe(hasPower);
        stream.write(text("are you there?"));
        await sleep(3_000);
        expect(seen.includes("one closed")).toBe(hasPower);
        two.machine.isUp = true;
        await sleep(10_000);
      });
      expect(seen).toContain("one closed");
      expect(seen.some((line) => line.startsWith("two reads"))).toBe(false);
    }
  });

  test("makes the writer wait for a paused reader, and lets it continue later", async () => {
    const { two, seen, sleep, listen, dial, run } = twoMachines();
    await run(async () => {
      await listen();
      const stream = dial();
      await sleep(10);
      two.process.pause();
      const block = Buffer.alloc(10_000);
      let written = 0;
      while (stream.write(block)) written += 1;
      expect(written).toBeGreaterThan(2);
      await sleep(1_000);
      expect(stream.writableNeedDrain).toBe(true);
      two.process.resume();
      await sleep(10);
      expect(stream.writableNeedDrain).toBe(false);
    });
    expect(seen).toContain("one may write");
  });

  test("destroyed at one end closes at the other, with or without an error, and late if the link is cut", async () => {
    const endings = new Set<string>();
    for (let seed = 1; seed <= 8; seed++) {
      const { network, seen, sleep, listen, dial, run } = twoMachines(seed);
      await run(async () => {
        await listen();
        const stream = dial();
        await sleep(10);
        const mend = network.link(1, 2).cut();
        stream.destroy();
        await sleep(1_000);
        expect(seen).not.toContain("two closed");
        mend();
        await sleep(5_000);
      });
      endings.add(seen.slice(seen.indexOf("one closed") + 1).join(", "));
    }
    expect(endings).toEqual(new Set(["two closed", "two ECONNRESET, two closed"]));
  });

  test("over a lossy link is delayed, and keeps its order", async () => {
    const { time, network, accepted, sleep, listen, dial, run } = twoMachines();
    const read: number[] = [];
    let slowest = 0;
    await run(async () => {
      await listen();
      const stream = dial();
      await sleep(10);
      network.link(1, 2).set({ loss: 0.3 });
      const sentAt: number[] = [];
      accepted[0]?.on("data", (chunk) => {
        for (const byte of chunk) {
          read.push(byte);
          slowest = Math.max(slowest, time.now - (sentAt[byte] as number));
        }
      });
      for (let i = 0; i < 100; i++) {
        sentAt[i] = time.now;
        stream.write(Buffer.from([i]));
        await sleep(5);
      }
      await sleep(20_000);
    });
    expect(read).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(slowest).toBeGreaterThan(150);
  });

  test.each([1, 2, 3, 4])(
    "on a link that is lossless again, lost packets arrive with the next retry, and those behind them at once (seed %d)",
    async (seed) => {
      const { time, network, accepted, sleep, listen, dial, run } = twoMachines(seed);
      const readAt: number[] = [];
      let mendedAt = 0;
      await run(async () => {
        await listen();
        const stream = dial();
        await sleep(10);
        network.link(1, 2).set({ loss: 0.99 });
        accepted[0]?.on("data", (chunk) => {
          for (const byte of chunk) readAt[byte] = time.now;
        });
        for (let i = 0; i < 20; i++) stream.write(Buffer.from([i]));
        await sleep(1_000); // Retries come after 0.2 s, 0.6 s, 1.4 s, and so on.
        network.link(1, 2).set({});
        mendedAt = time.now;
        await sleep(20_000);
      });
      expect(readAt).toHaveLength(20);
      expect(readAt.at(-1)).toBeGreaterThan(mendedAt);
      expect(readAt.at(-1)).toBeLessThan(mendedAt + 500);
    },
  );

  test("delivers all writes before end(), and the other direction is read to its end", async () => {
    const { seen, accepted, sleep, listen, dial, run } = twoMachines();
    await run(async () => {
      await listen();
      dial();
      await sleep(10);
      accepted[0]?.end(text("go away"));
      await sleep(10);
    });
    expect(seen).toContain("one reads go away");
    expect(seen).toContain("two closed");
    expect(seen.indexOf("one reads go away")).toBeLessThan(seen.indexOf("one closed"));
  });
});
