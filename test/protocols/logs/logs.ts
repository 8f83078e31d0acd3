/** The replicated logs of the registry, and what each is given in random runs. */
import type { Random } from "../../../src/core/random.ts";
import { replicatedLog } from "../../../src/protocols/family.ts";
import { protocolNamed, protocolNames } from "../../../src/protocols/index.ts";
import type { LogUnderTest } from "./swarm.ts";

type Drawn = ReturnType<LogUnderTest["draw"]>;

/** Between half and twice the speed, where nothing rests on clocks. */
const wild: Drawn = { log: {}, clocks: [0.5, 2] };

const settings: Readonly<Record<string, Partial<Omit<LogUnderTest, "name" | "make">>>> = {};

export const logs: readonly LogUnderTest[] = protocolNames
  .filter((name) => protocolNamed(name).family === replicatedLog)
  .map((name) => ({
    name,
    make: protocolNamed(name).model as never,
    nodes: 5,
    draw: (_chance: Random) => wild,
    ...settings[name],
  }));
