/** A coordination service in virtual time, with shortcuts for requests. */
import type { NodeId } from "../../../src/core/protocol.ts";
import { unwrapped } from "../../../src/core/wrapping.ts";
import {
  type CoordinationService,
  type CoordinationServiceOptions,
  coordinationService,
} from "../../../src/protocols/service/coordination-service/coordination-service.ts";
import type { MachineDefinitions } from "../../../src/protocols/service/coordination-service/machines.ts";
import type { Operation, Query } from "../../../src/protocols/service/coordination-service/operations.ts";
import { type Simulation, simulation } from "../../../src/sim/simulation.ts";

export type Sim = Simulation<CoordinationService>;
type Emitted = { at: number; node: NodeId; type: string } & Record<string, unknown>;

export interface Stage {
  sim: Sim;
  /** All events of sessions and replicas, in chronological order. */
  events: Emitted[];
  /** Sends a request to a member, and runs until it is answered. */
  submit(node: NodeId, operation: Operation): unknown;
  query(node: NodeId, query: Query): unknown;
  /** Sends a request to a member, and returns its number. */
  ask(node: NodeId, operation: Operation): number;
  /** Returns the answer to a request, or undefined if there is none yet. */
  answer(node: NodeId, request: number): unknown;
  run(ms: number): void;
  /** Returns the leader that a majority of the nodes knows. */
  leader(): NodeId;
}

export interface StageOptions {
  nodes?: number;
  service?: CoordinationServiceOptions;
  machines?: (node: NodeId) => MachineDefinitions;
  delayMs?: number | readonly [number, number];
  seed?: number;
  protocol?: typeof coordinationService;
}

export function stage({
  nodes = 3,
  service = {},
  machines = {},
  delayMs = 5,
  seed = 1,
  protocol = coordinationService,
}: Omit<StageOptions, "machines"> & { machines?: MachineDefinitions } = {}): Stage {
  const ids = Array.from({ length: nodes }, (_, node) => node);
  const events: Emitted[] = [];
  const sim: Sim = simulation({
    protocol: protocol(service, machines),
    nodes: ids,
    delayMs,
    seed,
    syncMs: 1,
    properties: "at the end",
    onEvent: (at, node, event) => {
      if (event.type !== "log") events.push({ at, node, ...unwrapped(event) });
    },
  });
  for (const node of ids) sim.start(node);
  sim.run(1_500);
  let request = 0;

  const answer = (node: NodeId, of: number): unknown =>
    sim.replies(node).find((reply) => reply.request === of)?.reply.body;
  function until(node: NodeId, of: number): unknown {
    const end = sim.now + 20_000;
    while (answer(node, of) === undefined && sim.now < end) sim.run(sim.now + 1);
    return answer(node, of);
  }
  function ask(node: NodeId, operation: Operation): number {
    request += 1;
    sim.command(node, { type: "session", body: { type: "submit", request, operation } });
    return request;
  }
  return {
    sim,
    events,
    ask,
    answer,
    submit: (node, operation) => until(node, ask(node, operation)),
    query(node, query) {
      request += 1;
      sim.command(node, { type: "session", body: { type: "query", request, query } });
      return until(node, request);
    },
    run: (ms) => sim.run(sim.now + ms),
    leader: () => sim.world.state(sim.world.alive[0] ?? 0).session.leader ?? 0,
  };
}
