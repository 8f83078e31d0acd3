/** Protocols as the hunt runs them, made of a module that may have a bug in it. */
import type { Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { happenedBeforeOrder } from "../../src/protocols/multicast/parts/promises.ts";
import { usedMulticast } from "../../src/protocols/multicast/parts/user.ts";
import { usedMutex } from "../../src/protocols/mutex/parts/user.ts";
import type { SeededBug, Subject } from "./bugs.ts";

export type AnyProtocol = Protocol<Vocabulary>;
type Module = Readonly<Record<string, (options?: object) => never>>;

const made: Readonly<Record<Subject, (module: Module) => unknown>> = {
  bully: (module) => module.bully?.(),
  causal: (module) => usedMulticast(module.causal?.() as never, [happenedBeforeOrder]),
  "chang-roberts": (module) => module.changRoberts?.(),
  "epoch-token-ring": (module) => usedMutex(module.epochTokenRing as never),
  "maekawa-sanders, rejoining": ({ maekawaSanders }) => usedMutex(() => maekawaSanders?.({ rejoins: true }) as never),
  "ricart-agrawala, rejoining": ({ ricartAgrawala }) => usedMutex(() => ricartAgrawala?.({ rejoins: true }) as never),
  paxos: (module) => module.paxos?.(),
  "ricart-agrawala": (module) => usedMutex(module.ricartAgrawala as never),
};

const root = new URL("../..", import.meta.url).pathname;

export async function withBug({ protocol, file, name }: SeededBug): Promise<AnyProtocol> {
  return made[protocol](await import(/* @vite-ignore */ `${root}${file}?bug=${name}`)) as AnyProtocol;
}

export async function withoutBug({ protocol, file }: SeededBug): Promise<AnyProtocol> {
  return made[protocol](await import(/* @vite-ignore */ `${root}${file}`)) as AnyProtocol;
}
