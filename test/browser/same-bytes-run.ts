/** Runs that use every kind of randomness. Node and a browser both execute them and compare every byte. */
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import { type Delay, type SimulationOptions, simulation } from "../../src/sim/index.ts";

type Options = SimulationOptions<{ state: object; command: { type: string } }>;

const NODES = [0, 1, 2, 3, 4];

const delays: Readonly<Record<string, Delay>> = {
  constant: 7,
  uniform: [1, 40],
  normal: { normal: { meanMs: 12, deviationMs: 6 } },
  "log-normal": { logNormal: { medianMs: 9, sigma: 1.2 } },
};

/** Returns the whole trace of one run, one entry per line, and how it ended. */
function run(protocol: string, delay: Delay, seed: number): string {
  const lines: string[] = [];
  try {
    play(protocol, delay, seed, lines);
  } catch (error) {
    lines.push(String(error)); // Some protocols do not support lossy links.
  }
  return lines.join("\n");
}

function play(protocol: string, delay: Delay, seed: number, lines: string[]): void {
  const { model, family } = protocolNamed(protocol);
  const sim = simulation({
    protocol: model() as Options["protocol"],
    nodes: NODES,
    seed,
    delayMs: delay,
    link: { duplicateRate: 0.05, lossRate: 0.02, bytesPerMs: 50, order: seed % 2 === 0 ? "fifo" : "none" },
    links: [{ from: 0, to: 4, delay: { normal: { meanMs: 30, deviationMs: 20 } } }],
    processingMs: { logNormal: { medianMs: 0.5, sigma: 0.5 } },
    syncMs: 3,
    trace: (entry) => lines.push(JSON.stringify(entry)),
    // A Byzantine node can lead some protocols to nonexistent nodes, but every protocol must tolerate late and repeated
    // messages.
    byzantine: new Map([[1, seed % 2 === 0 ? "withhold" : "replay"]]),
  });
  for (const node of NODES) sim.start(node);
  for (const node of NODES) {
    const command = family.ask(node, 2);
    if (command !== null) sim.command(node, command);
  }
  sim.run(30);
  sim.pause(2);
  sim.crash(3, { journal: "synced" });
  sim.clockRate(0, 0.7);
  sim.run(60);
  sim.partitionShape({ shape: "majority-ring" });
  sim.resume(2);
  sim.run(150);
  sim.heal();
  sim.setLink(2, 0, { delay: [2, 3], lossRate: 0.5 });
  sim.start(3);
  sim.run(600);
  lines.push(JSON.stringify({ messages: sim.messages, verdict: sim.verdict(), at: sim.now }));
}

/** Returns runs keyed by name: every protocol of the registry, with every kind of delay, from two seeds. */
export function runs(): Record<string, string> {
  const all = protocolNames.flatMap((protocol) =>
    Object.entries(delays).flatMap(([kind, delay]) =>
      [1, 2].map((seed) => [`${protocol}, ${kind} delays, seed ${seed}`, run(protocol, delay, seed)] as const),
    ),
  );
  return Object.fromEntries(all);
}
