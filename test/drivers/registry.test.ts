/** Checks that no algorithm changes its inputs: each runs at random with frozen messages, commands and records. */
import { expect, it } from "vitest";
import { systemFor, walk } from "../../src/check/index.ts";
import { clone, type Protocol, type Tagged, type Vocabulary } from "../../src/core/index.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";

function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

type Handler = (...args: unknown[]) => void;
const tables = { receive: 2, command: 1, replay: 1 };

/** Returns the same protocol with frozen inputs. `met` collects the names of the handlers that ran. */
function withFrozenInputs(protocol: Protocol<Vocabulary>, met: Set<string>): Protocol<Vocabulary> {
  const wrapped = Object.entries(tables).flatMap(([name, at]) => {
    const table = (protocol as unknown as Record<string, Record<string, Handler> | undefined>)[name];
    if (table === undefined) return [];
    const handlers = Object.entries(table).map(([type, handle]): [string, Handler] => [
      type,
      (...args) => {
        met.add(name);
        handle(...args.with(at, frozen(clone(args[at] as Tagged))));
      },
    ]);
    return [[name, Object.fromEntries(handlers)]];
  });
  return { ...protocol, ...Object.fromEntries(wrapped) };
}

const forms = protocolNames.flatMap((protocol) => [
  { protocol, variant: null },
  ...Object.keys(protocolNamed(protocol).variants).map((variant) => ({ protocol, variant })),
]);

it.each(forms.filter(({ variant }) => variant === null))("$protocol", changesNothing);
it.each(forms.filter(({ variant }) => variant !== null))("$protocol, $variant", { tags: ["larger"] }, changesNothing);

function changesNothing({ protocol, variant }: (typeof forms)[number]): void {
  const faults = { crashes: 1, recoveries: 1, losses: 1, duplications: 1, crashNotifications: "any" } as const;
  const system = systemFor({
    protocol,
    variant,
    nodes: [0, 1, 2],
    // With a failure detector, nodes start elections by themselves.
    ...(protocolNamed(protocol).family.name === "election" ? {} : { initiators: [0, 1, 2] }),
    times: 2,
    begin: "together",
    network: "bag",
    ...faults,
  });
  const met = new Set<string>();
  const own = withFrozenInputs(system.protocol, met);
  const journals = Object.keys(own.replay ?? {}).length > 0;
  const wanted = journals ? ["receive", "replay"] : ["receive"];
  // A node journals, crashes and restarts in few runs. Try at least one seed, and more until every handler has run.
  for (let seed = 1; seed <= 40 && (seed === 1 || !wanted.every((name) => met.has(name))); seed++)
    walk({ ...system, protocol: own, properties: [], strategy: "random", seed, runs: 15, stepsPerRun: 120 });
  expect([...met].sort()).toEqual(expect.arrayContaining(wanted));
}
