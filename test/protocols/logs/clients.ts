/**
 * Clients of a replicated log in the simulator, one at each node. They send random requests, and the results form a
 * history.
 */

import type { NodeId } from "../../../src/core/protocol.ts";
import type { Random } from "../../../src/core/random.ts";
import type { Operation, Value } from "../../../src/history/index.ts";
import type { MachineKind } from "../../../src/protocols/consensus/family/machine.ts";
import type { ReplicatedLog } from "../../../src/protocols/consensus/family/replicated-log.ts";
import type { ReplicatedSystem } from "../../../src/protocols/consensus/family/systems.ts";
import type { Simulation } from "../../../src/sim/index.ts";

const KEYS = ["a", "b", "c"];
/** The pause between an answer and the next request. */
const THINK_MS = [0, 150] as const;

/** Any log, together with a client and a state machine. */
export type AnyReplica = ReplicatedSystem<ReplicatedLog>;

interface Asked {
  readonly request: number;
  readonly text: string;
  readonly call: number;
}

interface Client {
  /** The incarnation of the client's node. */
  life: number;
  open: Asked | null;
  /** The time of the next request. Null while the client waits for an answer or its node is stopped. */
  nextAt: number | null;
  /** The number of replies of this incarnation that the client has read. */
  read: number;
}

export class Clients {
  readonly #sim: Simulation<AnyReplica>;
  readonly #kind: MachineKind;
  readonly #chance: Random;
  readonly history: Operation[] = [];
  /** The sum of all acknowledged additions to a counter. */
  acknowledgedAdds = 0;
  readonly #clients: ReadonlyMap<NodeId, Client>;
  readonly #known = new Map<string, string>();
  #requests = 0;
  /** The only request that clients still make. Null while requests are random. */
  #last: string | null = null;

  constructor(sim: Simulation<AnyReplica>, nodes: readonly NodeId[], kind: MachineKind, chance: Random) {
    this.#sim = sim;
    this.#kind = kind;
    this.#chance = chance;
    this.#clients = new Map(nodes.map((node) => [node, { life: 0, open: null, nextAt: null, read: 0 }]));
  }

  /** The time of the next request of any client. */
  get nextAt(): number {
    return Math.min(...[...this.#clients.values()].map(({ nextAt }) => nextAt ?? Number.POSITIVE_INFINITY));
  }

  /** Whether every client has all its answers and will make no more requests. */
  get areDone(): boolean {
    return [...this.#clients.values()].every(({ open, nextAt }) => open === null && nextAt === null);
  }

  get waiting(): string {
    const each = [...this.#clients].flatMap(([node, { open }]) =>
      open === null ? [] : [`${open.text} at node ${node}`],
    );
    return each.join(", ");
  }

  started(node: NodeId): void {
    const client = this.#client(node);
    client.life += 1;
    client.read = 0;
    client.nextAt = this.#last === null ? this.#soon() : null;
  }

  crashed(node: NodeId): void {
    const client = this.#client(node);
    if (client.open !== null) this.#note(node, client.open, undefined);
    Object.assign(client, { open: null, nextAt: null });
  }

  /** Makes the requests of all clients whose next request is due. */
  ask(): void {
    for (const [node, client] of this.#clients)
      if (client.nextAt !== null && client.nextAt <= this.#sim.now) this.#ask(node, client, this.#draw(node));
  }

  /** Makes each client send one more request, immediately or after its current answer. */
  end(lastOf: (node: NodeId) => string): void {
    this.#last = "";
    for (const [node, client] of this.#clients) {
      client.nextAt = null;
      if (client.open === null) this.#ask(node, client, lastOf(node));
    }
  }

  /** Reads the replies since the last call. */
  hear(): void {
    for (const [node, client] of this.#clients) {
      const replies = this.#sim.replies(node);
      for (; client.read < replies.length; client.read++) this.#answered(node, client, replies[client.read] as never);
    }
  }

  #answered(
    node: NodeId,
    client: Client,
    { request, reply }: { request: number; reply: { body: { type: string; result: string } } },
  ): void {
    const { open } = client;
    if (open?.request !== request || reply.body.type !== "result")
      throw new Error(`expected node ${node} to answer ${open?.text ?? "nothing"}, got ${JSON.stringify(reply)}`);
    const { result } = reply.body;
    this.#note(node, open, result);
    const [verb, key = ""] = open.text.split(" ");
    if (verb === "get" && this.#kind === "map") this.#known.set(key, result);
    if (verb === "add") this.acknowledgedAdds += 1;
    client.open = null;
    client.nextAt = this.#last === null ? this.#soon() : null;
  }

  #ask(node: NodeId, client: Client, text: string): void {
    this.#requests += 1;
    client.open = { request: this.#requests, text, call: this.#sim.now };
    client.nextAt = null;
    const body = { type: "execute", request: this.#requests, operation: text };
    this.#sim.command(node, { type: "client", body } as never);
  }

  #note(node: NodeId, { text, call }: Asked, output: Value | undefined): void {
    const [f = "", key] = text.split(" ");
    this.history.push({
      process: `${node}.${this.#client(node).life}`,
      f,
      key: this.#kind === "map" ? key : undefined,
      input: text,
      output,
      call,
      return: output === undefined ? null : this.#sim.now,
      line: null,
    });
  }

  #draw(node: NodeId): string {
    const chance = this.#chance;
    const kind = this.#kind;
    if (kind === "counter") return chance.below(4) === 0 ? "get" : "add 1";
    if (kind === "log") return chance.below(4) === 0 ? "read" : `append ${this.#fresh(node)}`;
    const key = chance.pick(KEYS);
    switch (chance.below(5)) {
      case 0:
        return `delete ${key}`;
      case 1:
        return `cas ${key} ${this.#known.get(key) ?? ""} ${this.#fresh(node)}`;
      case 2:
        return `put ${key} ${this.#fresh(node)}`;
      default:
        return `get ${key}`;
    }
  }

  #fresh(node: NodeId): string {
    return `${node}.${this.#requests}`;
  }

  #soon(): number {
    return this.#sim.now + this.#chance.between(...THINK_MS);
  }

  #client(node: NodeId): Client {
    return this.#clients.get(node) as Client;
  }
}
