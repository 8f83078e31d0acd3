/**
 * Connects the studio to running members, started by `join()` or by `coterie node`, through their admin pages. The
 * studio did not start these processes, so it cannot kill or pause them. It can inject faults into links only if every
 * member's fault injector is on.
 */
import { z } from "zod";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import type { NodeId, View } from "../core/protocol.ts";
import { messageInksOf } from "../protocols/message-inks.ts";
import { wallClock } from "../runtime/platform/wall-clock.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { postCommand, putFaults } from "./admin-client.ts";
import type { Act, ClusterPicture, NetworkPeriod, NetworkPicture, NodePicture } from "./feed.ts";
import { headlineOf, presentedOf, spansOf } from "./headline.ts";
import { exchange } from "./http-exchange.ts";
import { commandNamed, offeredCommands } from "./local/offered-commands.ts";
import { RecentTrace } from "./local/recent-trace.ts";
import type { Recorder } from "./local/recorder.ts";
import { listenToTrace } from "./local/trace-intake.ts";
import { changesOf, faultsOf, healthyNetwork, networkAfter, networksAfter } from "./local/wanted-network.ts";

const PATIENCE_MS = 2_000;
const LOOK_EVERY_MS = 1_000;

/** The status fields used here, for both kinds of members. Newer members may send more. */
const statusSchema = z.object({
  id: z.number(),
  pid: z.number(),
  cluster: z.string(),
  protocol: z.string(),
  address: z.string(),
  view: z.looseObject({ role: z.string(), leader: z.number().nullable().optional(), term: z.number().optional() }),
  commands: z.record(z.string(), z.array(z.string())),
  byzantine: z.string().exactOptional(),
});
type Status = z.infer<typeof statusSchema>;

const faultsSchema = z.object({
  cutTo: z.array(z.number()),
  dropRate: z.number(),
  delayMs: z.object({ min: z.number(), max: z.number() }),
});

interface Attached {
  readonly admin: string;
  status: Status;
  /** Why the member does not answer. Null if it does. */
  silence: string | null;
  view: View;
}

export interface AttachedStatus {
  readonly cluster: string;
  readonly protocol: string;
  readonly nodes: readonly NodePicture[];
}

/** Reads the status and the traces of members that this process did not start. */
export class AttachedCluster {
  readonly trace = new RecentTrace();
  revision = 0;
  networks: readonly NetworkPeriod[];
  readonly #members = new Map<NodeId, Attached>();
  readonly #takesFaults: boolean;
  readonly #recorder: Recorder | null;
  readonly #listeners = new Set<() => void>();
  readonly #endings: (() => Promise<void>)[] = [];
  readonly #ended = new AbortController();
  #looks: NodeJS.Timeout | undefined;
  #greetings = 0;

  private constructor(members: readonly Attached[], network: NetworkPicture | null, recorder: Recorder | null) {
    for (const member of members) this.#members.set(member.status.id, member);
    this.#takesFaults = network !== null;
    this.#recorder = recorder;
    this.networks = [{ since: wallClock(), network: network ?? healthyNetwork }];
  }

  /**
   * Requests each member's status, then follows their traces.
   * @param recorderFor called once all members have answered
   * @throws EnvironmentError if a member does not answer; UsageError if the members do not belong together
   */
  static async to(
    urls: readonly string[],
    recorderFor: (status: Pick<Status, "cluster" | "protocol">, nodes: readonly NodeId[]) => Recorder | null,
  ): Promise<AttachedCluster> {
    const members = await Promise.all(urls.map(metAt));
    const [first] = members.map(({ status }) => status) as [Status];
    for (const [index, { admin, status }] of members.entries()) {
      if (status.cluster !== first.cluster || status.protocol !== first.protocol)
        throw new UsageError(
          "bad-argument",
          unexpected(admin, `a member of ${inWords(first)}, as ${urls[0]} is`, inWords(status)),
        );
      const twin = members.findIndex(({ status: { id } }) => id === status.id);
      if (twin < index)
        throw new UsageError(
          "bad-argument",
          `expected different members, but ${urls[twin]} and ${admin} are both member ${status.id}`,
        );
    }
    members.sort((a, b) => a.status.id - b.status.id);
    const network = await networkOf(members);
    const cluster = new AttachedCluster(
      members,
      network,
      recorderFor(
        first,
        members.map(({ status: { id } }) => id),
      ),
    );
    // Readers assume that a recording starts without faults.
    cluster.#recordFaults(healthyNetwork, network ?? healthyNetwork);
    cluster.#listen();
    return cluster;
  }

  get picture(): ClusterPicture {
    const [{ status }] = [...this.#members.values()] as [Attached];
    const { cluster: name, protocol } = status;
    const { since: networkSince, network } = this.networks.at(-1) as NetworkPeriod;
    const inks = messageInksOf(protocol);
    const [isAttached, takesFaults] = [true, this.#takesFaults];
    const nodes = [...this.#members.values()].map(pictureOf);
    return {
      name,
      protocol,
      now: Date.now(),
      restarts: false,
      isAttached,
      takesFaults,
      nodes,
      network,
      networkSince,
      inks,
      spans: spansOf(protocol),
      headline: headlineOf(protocol, nodes, null),
      ...presentedOf(protocol, [...this.#members.keys()], undefined),
    };
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  status(): Promise<AttachedStatus> {
    const { name: cluster, protocol, nodes } = this.picture;
    return Promise.resolve({ cluster, protocol, nodes });
  }

  /** @throws UsageError if the action is not possible here; EnvironmentError if a member does not answer */
  async act(act: Act): Promise<void> {
    switch (act.type) {
      case "kill":
      case "restart":
      case "pause":
      case "resume":
        throw new UsageError(
          "bad-act",
          `expected an action on links or a command: this studio did not start member ${act.node}, so it cannot ${act.type} it`,
        );
      case "command":
        return this.#command(act.node, act.command);
      default:
        return this.#disturb(act);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#looks);
    const over = Promise.all(this.#endings.map((end) => end()));
    this.#ended.abort();
    await over;
  }

  #listen(): void {
    for (const [id, member] of this.#members)
      this.#endings.push(
        listenToTrace(member.admin, id, (entry, line) => this.#heard(id, member, entry, line), this.#ended.signal),
      );
    this.#looks = setInterval(() => void this.#look(), LOOK_EVERY_MS);
  }

  #heard(id: NodeId, member: Attached, entry: TraceEntry, line: string): void {
    if (entry.kind === "view") {
      member.view = entry.view;
      this.revision += 1;
    }
    this.#record(id, line);
  }

  /** Checks every member. One that does not answer is shown as exited until it answers again. */
  async #look(): Promise<void> {
    await Promise.all(
      [...this.#members].map(async ([id, member]) => {
        const answer = await statusAt(member.admin).catch(() => null);
        const silence = answer === null ? "does not answer" : answer.id === id ? null : `is member ${answer.id} now`;
        const isNews = silence !== member.silence || (answer !== null && answer.pid !== member.status.pid);
        if (silence === null && answer !== null) member.status = answer;
        member.silence = silence;
        if (isNews) this.#changed();
        if (isNews && silence === null) await this.#disturbAgain(id, member);
      }),
    );
  }

  /** Restores the displayed faults on a restarted member, which starts without any. */
  async #disturbAgain(id: NodeId, { admin }: Attached): Promise<void> {
    if (!this.#takesFaults) return;
    const { network } = this.networks.at(-1) as NetworkPeriod;
    await putFaults(admin, faultsOf(id, network)).catch(() => {}); // It has stopped again. The next check retries.
  }

  async #command(node: NodeId, command: string): Promise<void> {
    const { admin, status } = this.#memberNamed(node);
    await postCommand(admin, commandNamed(status.commands, command, ++this.#greetings));
  }

  async #disturb(act: Parameters<typeof networkAfter>[1]): Promise<void> {
    if (!this.#takesFaults)
      throw new UsageError(
        "bad-act",
        "expected members with a fault injector: start each with join({ faultInjector: true }) or --fault-injector",
      );
    const named = act.type === "cut" || act.type === "mend" ? act.nodes : act.type === "split" ? act.groups.flat() : [];
    for (const node of named) this.#memberNamed(node);
    const before = (this.networks.at(-1) as NetworkPeriod).network;
    const network = networkAfter(before, act, [...this.#members.keys()]);
    this.networks = networksAfter(this.networks, { since: wallClock(), network });
    this.#recordFaults(before, network);
    this.#changed();
    await Promise.all([...this.#members].map(([id, { admin }]) => putFaults(admin, faultsOf(id, network))));
  }

  #recordFaults(before: NetworkPicture, after: NetworkPicture): void {
    for (const id of this.#members.keys())
      for (const what of changesOf(id, before, after))
        this.#record(id, JSON.stringify({ at: wallClock(), node: id, kind: "fault", what }));
  }

  #memberNamed(node: NodeId): Attached {
    const member = this.#members.get(node);
    if (member !== undefined) return member;
    throw new UsageError(
      "unknown-node",
      unexpected("the node", `one of ${[...this.#members.keys()].join(", ")}`, node),
    );
  }

  #record(node: NodeId, line: string): void {
    this.trace.add(line);
    this.#recorder?.write(node, line);
    for (const listener of this.#listeners) listener();
  }

  #changed(): void {
    this.revision += 1;
    for (const listener of this.#listeners) listener();
  }
}

const inWords = ({ cluster, protocol }: Pick<Status, "cluster" | "protocol">): string =>
  `cluster ${cluster} with ${protocol}`;

function pictureOf({ admin, status: { id, pid, address, commands, byzantine }, silence, view }: Attached): NodePicture {
  const isThere = silence === null;
  return {
    id,
    pid: isThere ? pid : null,
    address,
    admin,
    process: isThere ? "running" : "exited",
    exit: silence,
    view: isThere ? view : null,
    ...(byzantine === undefined ? {} : { byzantine }),
    commands: offeredCommands(commands),
  };
}

async function metAt(admin: string): Promise<Attached> {
  const status = await statusAt(admin);
  const trace = await exchange(`${admin}/trace`, { method: "HEAD", timeoutMs: PATIENCE_MS });
  if (trace.status === 404)
    throw new UsageError(
      "bad-argument",
      `expected ${admin} to serve its trace, but its admin pages are read-only: serve them on a loopback address`,
    );
  return { admin, status, silence: null, view: status.view as View };
}

/** @throws EnvironmentError if no server answers, or if the server is not a member */
async function statusAt(admin: string): Promise<Status> {
  const { status, body } = await exchange(`${admin}/status`, { timeoutMs: PATIENCE_MS });
  const parsed = statusSchema.safeParse(body);
  if (status === 200 && parsed.success) return parsed.data;
  throw new EnvironmentError(
    "no-answer",
    `expected a member's admin pages at ${admin}, but /status there has an unexpected format`,
  );
}

/** Returns the faults that are set in the members' fault injectors, or null if any injector is off. */
async function networkOf(members: readonly Attached[]): Promise<NetworkPicture | null> {
  const answers = await Promise.all(
    members.map(({ admin }) => exchange(`${admin}/faults`, { timeoutMs: PATIENCE_MS })),
  );
  const faults = answers.map(({ status, body }) => (status === 200 ? faultsSchema.safeParse(body).data : undefined));
  if (faults.includes(undefined)) return null;
  const all = faults as z.infer<typeof faultsSchema>[];
  const [{ dropRate, delayMs }] = all as [z.infer<typeof faultsSchema>];
  const cuts = all.flatMap(({ cutTo }, index) =>
    cutTo.map((to) => [(members[index] as Attached).status.id, to] as const),
  );
  return { cuts, dropRate, delayMs: [delayMs.min, delayMs.max] };
}
