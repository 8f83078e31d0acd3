/** The system of a replicated log: a client and a replica of the state machine at every node, in simulator, checker and real processes alike. */
import type { Assembly, Wires } from "../../../core/assemble.ts";
import type { Property, Protocol } from "../../../core/protocol.ts";
import { withFixed } from "../../options.ts";
import { composed, joined, type System } from "../../system.ts";
import { type LogClient, type LogClientOptions, logClient } from "./client.ts";
import { type Machine, type MachineOptions, machine } from "./machine.ts";
import { logProperties } from "./properties.ts";
import type { ReplicatedLog } from "./replicated-log.ts";

type Replica<L extends ReplicatedLog> = { client: LogClient; machine: Machine; log: L };
export type ReplicatedSystem<L extends ReplicatedLog> = Assembly<Replica<L>>;

export interface ReplicatedSystemOptions<O> {
  client?: Partial<Pick<LogClientOptions, "retryMs">>;
  machine?: Partial<MachineOptions>;
  log?: O;
}

const wires: Wires<Replica<ReplicatedLog>> = {
  client: {
    asked: ({ client, sequence, operation }, give) =>
      give("log", { type: "propose", command: { client, sequence, operation } }),
    reading: ({ read }, give) => give("log", { type: "read", read }),
    query: ({ read, operation }, give) => give("machine", { type: "query", read, operation }),
  },
  log: {
    decided: ({ index, command }, give) => give("machine", { type: "decided", index, command }),
    installed: ({ index, snapshot }, give) => give("machine", { type: "installed", index, snapshot }),
    readable: ({ read }, give) => give("client", { type: "readable", read }),
    checkpoint: ({ index }, give) => give("machine", { type: "save", index }),
    answered: ({ sequence, result, index }, give) => give("client", { type: "answered", sequence, result, index }),
  },
  machine: {
    answered: ({ sequence, result, index }, give) => give("client", { type: "answered", sequence, result, index }),
    queried: ({ read, result }, give) => give("client", { type: "queried", read, result }),
    replied: ({ client, sequence, result, index }, give) =>
      give("log", { type: "reply", client, sequence, result, index }),
    saved: ({ index, snapshot }, give) => give("log", { type: "compact", index, snapshot }),
  },
};

/** @param orders what the log promises of its order where that is not one order for all commands. */
export function withLogClients<L extends ReplicatedLog, O extends object>(
  { parts, wires: ofLog, algorithm }: System,
  orders: readonly Property<never>[],
) {
  const whole = { parts: { client: logClient, machine, ...parts }, wires: joined(wires, ofLog), algorithm };
  const make = composed<Replica<L>, { client?: object; machine?: object; log?: O }>(whole);
  const log = parts[algorithm] as (options?: O) => Protocol<ReplicatedLog>;
  return (options: ReplicatedSystemOptions<O> = {}): Protocol<ReplicatedSystem<L>> => {
    const kind = options.machine?.kind;
    const { command } = log(options.log);
    const client = {
      ...options.client,
      reads: Object.hasOwn(command, "read"),
      ...(kind === undefined ? {} : { kind }),
    };
    const machine = { ...options.machine, repliesToAll: Object.hasOwn(command, "reply") };
    const system = withFixed(["client.reads", "client.kind", "machine.repliesToAll"], () =>
      make({ ...options, client, machine }),
    );
    const promised = logProperties(orders);
    // What the log promises by itself under the same name is said once, with the clients that see it.
    const others = system.properties.filter(({ name }) => !promised.some((property) => property.name === name));
    return { ...system, properties: [...others, ...promised] } as never;
  };
}

/** A replicated log with a client and a state machine at every node. */
export const replicated = <L extends ReplicatedLog, O extends object>(
  log: (options?: O) => Protocol<L>,
  options?: ReplicatedSystemOptions<O>,
): Protocol<ReplicatedSystem<L>> => withLogClients<L, O>({ parts: { log }, wires: {}, algorithm: "log" }, [])(options);
