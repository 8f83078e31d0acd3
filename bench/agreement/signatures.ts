/** What PBFT's signatures cost: how many a decision takes, counted in a simulated run, and how long Node takes for one. */
import { generateKeyPairSync } from "node:crypto";
import { Bench } from "tinybench";
import { replicated } from "../../src/protocols/consensus/family/systems.ts";
import { type Pbft, type PbftOptions, pbft } from "../../src/protocols/consensus/pbft/pbft.ts";
import { contexts, withContext } from "../../src/protocols/contexts.ts";
import { ed25519 } from "../../src/runtime/signatures.ts";
import { simulation } from "../../src/sim/index.ts";

interface Counted {
  readonly signed: number;
  readonly verified: number;
}

/** Of one command, which the primary's client asks for, at all replicas together. */
export function signaturesOfOneDecision(nodes: number): Counted {
  const counts = { signed: 0, verified: 0 };
  const counting = contexts(({ signatures }) => ({
    signatures: {
      sign(text) {
        counts.signed += 1;
        return signatures.sign(text);
      },
      isSigned(by, text, signature) {
        counts.verified += 1;
        return signatures.isSigned(by, text, signature);
      },
    },
  }));
  const counted = (options?: Partial<PbftOptions>): ReturnType<typeof pbft> => withContext(pbft(options), counting);
  const ids = Array.from({ length: nodes }, (_, id) => id);
  const sim = simulation({
    protocol: replicated<Pbft, Partial<PbftOptions>>(counted),
    nodes: ids,
    seed: 1,
    delayMs: 10,
  });
  for (const id of ids) sim.start(id);
  sim.command(0, { type: "client", body: { type: "use", commands: 1 } });
  sim.run(1_000);
  return counts;
}

/** Microseconds each, of a text as long as a prepare. */
export function measureSignatures(times: number): { readonly signUs: number; readonly verifyUs: number } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const { sign, isSigned } = ed25519({ own: privateKey, all: new Map([[0, publicKey]]) });
  const text = JSON.stringify(["prepare", 0, { digest: "x".repeat(64), sequence: 1, view: 0 }]);
  const signature = sign(text);
  const bench = new Bench({ iterations: times, time: 0, throws: true })
    .add("sign", () => sign(text))
    .add("verify", () => isSigned(0, text, signature));
  const [signUs = 0, verifyUs = 0] = bench
    .runSync()
    .map(({ result }) => ("latency" in result ? result.latency.p50 * 1_000 : Number.NaN));
  return { signUs, verifyUs };
}
