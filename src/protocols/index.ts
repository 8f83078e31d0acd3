/** The registry: one line per algorithm. Command line, simulator, studio and benchmarks read it. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { Protocol, Vocabulary } from "../core/protocol.ts";
import { paxos } from "./consensus/paxos.ts";
import { bully } from "./election/bully.ts";
import { changRoberts } from "./election/chang-roberts.ts";
import { monitoredBully } from "./election/monitored.ts";
import { heartbeat } from "./membership/heartbeat.ts";
import { causal } from "./multicast/causal.ts";
import { usedMutex } from "./mutex/parts/user.ts";
import { ricartAgrawala } from "./mutex/ricart-agrawala.ts";

export interface RegistryEntry {
  /** One line for lists. */
  readonly summary: string;
  /** The algorithm alone, as the book has it: for the simulator and the checker. */
  readonly bare: (options?: object) => Protocol<Vocabulary>;
  /** What runs on real processes: the algorithm with the parts that it needs there. */
  readonly live: (options?: object) => Protocol<Vocabulary>;
}

const registry: Readonly<Record<string, RegistryEntry>> = {
  bully: entry("the alive node with the highest rank leads", bully, monitoredBully),
  causal: entry("multicast; nothing is delivered before what it may depend on", causal),
  "chang-roberts": entry("on a ring, the highest id comes back to its node and leads", changRoberts),
  heartbeat: entry("suspects whoever has not been heard of for too long", heartbeat),
  paxos: entry("a majority promises, a majority accepts, and one value is decided", paxos),
  "ricart-agrawala": entry("who wants in asks everybody; the lowest stamp goes first", ricartAgrawala, (options) =>
    usedMutex(ricartAgrawala, options),
  ),
};

export const protocolNames = Object.keys(registry);

/** @throws UsageError for a name that is not in the registry. */
export function protocolNamed(name: string): RegistryEntry {
  const found = Object.hasOwn(registry, name) ? registry[name] : undefined;
  if (found === undefined)
    throw new UsageError("unknown-protocol", unexpected("the protocol", `one of ${protocolNames.join(", ")}`, name));
  return found;
}

/** Forgets the type bag: whoever goes through the registry handles every algorithm alike. */
function entry<B extends Vocabulary, L extends Vocabulary>(
  summary: string,
  bare: (options?: never) => Protocol<B>,
  live: ((options?: never) => Protocol<L>) | null = null,
): RegistryEntry {
  return {
    summary,
    bare: bare as RegistryEntry["bare"],
    live: (live ?? bare) as unknown as RegistryEntry["live"],
  };
}

export { type Ballot, type Paxos, type PaxosOptions, type Proposal, paxos } from "./consensus/paxos.ts";
export { type Bully, type BullyOptions, bully } from "./election/bully.ts";
export { type ChangRoberts, type ChangRobertsOptions, changRoberts } from "./election/chang-roberts.ts";
export {
  type MonitoredBully,
  type MonitoredBullyOptions,
  monitoredBully,
} from "./election/monitored.ts";
export {
  type Heartbeat,
  type HeartbeatOptions,
  heartbeat,
} from "./membership/heartbeat.ts";
export { type Causal, causal } from "./multicast/causal.ts";
export {
  happenedBeforeOrder,
  type Multicast,
  type MulticastUser,
  type MulticastUserOptions,
  multicastUser,
  type UsedMulticast,
  usedMulticast,
} from "./multicast/parts/user.ts";
export {
  type Mutex,
  type MutexUser,
  type MutexUserOptions,
  mutexUser,
  type UsedMutex,
  type UsedMutexOptions,
  usedMutex,
} from "./mutex/parts/user.ts";
export { type RicartAgrawala, ricartAgrawala } from "./mutex/ricart-agrawala.ts";
