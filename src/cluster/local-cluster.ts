/**
 * A cluster of real processes on this machine, and their supervisor. It detects and reports every change to a process,
 * no matter who caused it, and restarts processes if configured to do so.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { messageInksOf } from "../protocols/message-inks.ts";
import { formatHostPort } from "../runtime/host-port.ts";
import { wallClock } from "../runtime/platform/wall-clock.ts";
import type { Refused } from "../runtime/transport/identity.ts";
import { askStatus, postCommand } from "./admin-client.ts";
import type { Act, ClusterPicture, NetworkPeriod, NetworkPicture, NodePicture } from "./feed.ts";
import { headlineOf, presentedOf, spansOf, ToldEvents } from "./headline.ts";
import { agreementOf, areUp, isLeaderless, isSettled, opinionsOf } from "./local/agreement.ts";
import type { Caretaker } from "./local/caretaker.ts";
import { DisagreementWatch } from "./local/disagreement-watch.ts";
import type { LifecycleEvent } from "./local/lifecycle.ts";
import { LocalMember, type Surroundings } from "./local/local-member.ts";
import type { Launch } from "./local/member-process.ts";
import { RecentTrace } from "./local/recent-trace.ts";
import type { Recorder } from "./local/recorder.ts";
import { RegularLooks } from "./local/regular-looks.ts";
import { lookEveryMs, stoppedAmong } from "./local/stopped-processes.ts";
import {
  changesOf,
  faultsOf,
  healthyNetwork,
  type NetworkAct,
  networkAfter,
  networksAfter,
} from "./local/wanted-network.ts";
import type { ClusterConfig } from "./protocol-config.ts";

/** How long an agreement must last to count, since the last member to start may call one more election. */
const SETTLED_FOR_MS = 250;
/** If no member knows of a leader for this long, the protocol needs a command to call an election. */
const LEADERLESS_FOR_MS = 1_500;
const READY_WITHIN_MS = 15_000;
/** Additional startup time per member, since the members of a large cluster share few cores. */
const READY_WITHIN_MS_PER_MEMBER = 1_000;
/** A member that does not answer within this time is reported as not alive. */
const ALIVE_WITHIN_MS = 300;
const STOP_WITHIN_MS = 1_500;
const KILL_WITHIN_MS = 2_000;
/** How long an action waits for the members to complete it. */
const ACT_WITHIN_MS = 1_000;
const LOOK_AGAIN_MS = 10;
/** The minimum interval between changes to the summary, so that people can read it. */
const HEADLINE_EVERY_MS = 250;
const NEVER = Number.POSITIVE_INFINITY;

export interface LocalClusterOptions {
  readonly config: ClusterConfig;
  readonly launch: Launch;
  /** Whether to restart processes that crash. */
  readonly restarts: boolean;
  readonly caretaker: Caretaker;
  /** Called when the cluster is ready, and for every later event. */
  readonly onEvent: (event: LifecycleEvent) => void;
  readonly log: (node: NodeId, line: string) => void;
  /** Byzantine behaviors, keyed by member. */
  readonly liars?: Readonly<Record<NodeId, string>>;
  /** The seed for the Byzantine members' choices. */
  readonly seed?: number;
  /** Records the members' traces. Null if nothing is recorded. */
  readonly recorder: Recorder | null;
}

export interface ClusterStatus {
  readonly cluster: string;
  readonly protocol: string;
  /** Whether the protocol has leaders. Also false if no member answers. */
  readonly hasLeaders: boolean;
  readonly nodes: readonly ClusterNodeStatus[];
}

/** The status of one node. */
export interface ClusterNodeStatus {
  readonly id: NodeId;
  readonly pid: number | null;
  /** Whether the process exists and has just answered. */
  readonly alive: boolean;
  readonly leader: NodeId | null;
  readonly term: number | null;
  readonly role: string | null;
  readonly process: "starting" | "running" | "paused" | "exited";
  readonly address: string;
  readonly admin: string;
  /** The node's Byzantine behavior, if it was started with one. */
  readonly byzantine?: string;
  /** The peers that the node exchanges no messages with, and why. */
  readonly refusals: readonly Refused[];
}

/** Starts, supervises and stops the processes of a cluster. */
export class LocalCluster {
  readonly #options: LocalClusterOptions;
  readonly trace = new RecentTrace();
  /** Incremented on each change to the picture. */
  revision = 0;
  readonly #members = new Map<NodeId, LocalMember>();
  #network: NetworkPicture = healthyNetwork;
  /** The states of the network during the last minute, ending with the current one. */
  networks: readonly NetworkPeriod[] = [{ since: wallClock(), network: healthyNetwork }];
  readonly #inks: Readonly<Record<string, number>>;
  readonly #presented: ReturnType<typeof presentedOf>;
  readonly #events = new ToldEvents();
  #headline: string | null | undefined;
  #reconsidering: NodeJS.Timeout | null = null;
  readonly #listeners = new Set<() => void>();
  readonly #waiting: (() => void)[] = [];
  #leader: NodeId | null = null;
  #phase: "starting" | "ready" | "stopping" = "starting";
  /** Whether the cluster has become ready at least once. Events are reported only after that. */
  #wasReady = false;
  #stopped: Promise<void> | null = null;
  /** Checks periodically which processes are paused. */
  readonly #looks = new RegularLooks(() => this.#look(), lookEveryMs);
  readonly #disagreement = new DisagreementWatch((opinions) => this.#tell({ event: "disagreement", opinions }));

  constructor(options: LocalClusterOptions) {
    this.#options = options;
    const { config, launch, restarts, log, recorder } = options;
    this.#inks = messageInksOf(config.protocol);
    this.#presented = presentedOf(config.protocol, Object.keys(config.members).map(Number), config.options);
    const around: Surroundings = {
      launch,
      restarts,
      log,
      onEvent: (event) => this.#tell(event),
      record: (node, line, entry) => {
        if (entry.kind === "event") this.#events.add(node, entry.event);
        if (entry.kind === "event" || entry.kind === "view") this.#reconsider();
        this.trace.add(line);
        recorder?.write(node, line);
        this.#notify();
      },
      changed: () => this.#changed(),
      wantedFaults: (node) => faultsOf(node, this.#network),
    };
    for (const [key, { address, admin }] of Object.entries(config.members)) {
      const id = Number(key);
      const byzantine = this.#options.liars?.[id];
      this.#members.set(
        id,
        new LocalMember(id, formatHostPort(address), `http://${formatHostPort(admin)}`, around, byzantine),
      );
    }
  }

  get picture(): ClusterPicture {
    const { config, restarts } = this.#options;
    const nodes = [...this.#members.values()].map((member) => member.picture);
    const [network, inks, presented] = [this.#network, this.#inks, this.#presented];
    const networkSince = this.networks.at(-1)?.since ?? 0;
    const { cluster: name, protocol } = config;
    const kind = { restarts, isAttached: false, takesFaults: true };
    const [headline, spans] = [headlineOf(protocol, nodes, this.#events.all), spansOf(protocol)];
    return {
      name,
      protocol,
      now: Date.now(),
      ...kind,
      nodes,
      network,
      networkSince,
      inks,
      spans,
      headline,
      ...presented,
    };
  }

  /**
   * Calls the listener on every new trace entry and every change to the picture.
   * @returns a function that removes the listener
   */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Starts every member and waits until all of them answer and have agreed for a while. Returns false early if `stop`
   * is called in the meantime.
   * @throws EnvironmentError if startup takes too long or a member dies
   */
  async start(): Promise<boolean> {
    for (const member of this.#members.values()) member.start();
    this.#looks.start();
    const withinMs = Math.max(READY_WITHIN_MS, READY_WITHIN_MS_PER_MEMBER * this.#members.size);
    const deadline = Date.now() + withinMs;
    let [settledAt, leaderlessAt] = [NEVER, NEVER];
    while (this.#phase === "starting" && Date.now() < Math.min(settledAt, leaderlessAt)) {
      const dead = this.picture.nodes.find(({ process }) => process === "exited");
      if (dead !== undefined)
        throw new EnvironmentError(
          "not-ready",
          `the cluster did not become ready because of node ${dead.id}: ${dead.exit}; see its log`,
        );
      if (Date.now() > deadline) throw new EnvironmentError("not-ready", this.#whatIsMissing(withinMs));
      settledAt = dueWhile(isSettled(this.picture.nodes), settledAt, SETTLED_FOR_MS);
      leaderlessAt = dueWhile(this.#needsNoLeader(), leaderlessAt, LEADERLESS_FOR_MS);
      await this.#nextChange(Math.min(deadline, settledAt, leaderlessAt) - Date.now());
    }
    if (this.#phase !== "starting") return false;
    this.#phase = "ready";
    this.#wasReady = true;
    const { nodes } = this.picture;
    const leader = agreementOf(nodes)?.leader ?? null;
    this.#tell({ event: "ready", leader, nodes: nodes.map(whereabouts), ...this.#chance() });
    this.#changed();
    return true;
  }

  get #hasLiars(): boolean {
    return Object.keys(this.#options.liars ?? {}).length > 0;
  }

  /**
   * Whether startup can succeed without a leader, either because the protocol elects none until a command calls an
   * election, or because some members are Byzantine, so the others may never agree.
   */
  #needsNoLeader(): boolean {
    const { nodes } = this.picture;
    return isLeaderless(nodes) || (this.#hasLiars && areUp(nodes));
  }

  #chance(): { seed?: number } {
    const { seed } = this.#options;
    return this.#hasLiars && seed !== undefined ? { seed } : {};
  }

  /** Requests the status of all members. */
  async status(): Promise<ClusterStatus> {
    const { cluster, protocol } = this.#options.config;
    await this.#looks.now(); // A paused process cannot answer, so do not wait for it.
    let hasLeaders = false;
    const asked = [...this.#members.values()].map(async (member): Promise<ClusterNodeStatus> => {
      const { id, address, admin } = member;
      const canAnswer = member.state === "running" || member.state === "starting";
      const answer = canAnswer ? await askStatus(admin, id, ALIVE_WITHIN_MS) : null;
      // The process may have died in the meantime, and a different program may have answered on its port.
      const status = answer !== null && answer.pid === member.pid ? answer : null;
      hasLeaders ||= status?.view.leader !== undefined;
      const { leader = null, term = null, role = null, refusals = [] } = status ?? {};
      const { pid, state: process, lying } = member;
      return { id, pid, alive: status !== null, leader, term, role, process, address, admin, ...lying, refusals };
    });
    const nodes = await Promise.all(asked);
    return { cluster, protocol, hasLeaders, nodes };
  }

  /** @throws UsageError if the action is not possible now; EnvironmentError if a member does not answer */
  async act(act: Act): Promise<void> {
    if (this.#phase === "stopping") throw new UsageError("bad-act", "expected a running cluster, but it is stopping");
    switch (act.type) {
      case "kill":
        return this.#signal(act.node, "SIGKILL", (state) => state === "exited");
      case "pause":
        return this.#signal(act.node, "SIGSTOP", (state) => state !== "running");
      case "resume":
        return this.#signal(act.node, "SIGCONT", (state) => state !== "paused");
      case "restart":
        return this.#memberNamed(act.node).restart();
      case "command":
        return this.#command(act.node, act.command);
      case "cut":
      case "mend":
      case "split":
      case "heal":
      case "link-conditions":
        return this.#changeNetwork(act);
    }
  }

  /** Stops every process, including paused ones, after a grace period for a clean exit. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  /** Kills every process immediately. `stop` resolves shortly afterwards. */
  kill(): void {
    for (const member of this.#members.values()) member.stop("SIGKILL");
  }

  async #stopAll(): Promise<void> {
    this.#tell({ event: "stopping" });
    this.#phase = "stopping";
    this.#disagreement.stop();
    this.#changed();
    for (const member of this.#members.values()) member.stop("SIGTERM");
    await this.#until(() => this.#isGone(), STOP_WITHIN_MS);
    this.kill();
    await this.#until(() => this.#isGone(), KILL_WITHIN_MS);
    this.#looks.stop();
  }

  #isGone(): boolean {
    return [...this.#members.values()].every(({ state }) => state === "exited");
  }

  async #signal(node: NodeId, name: NodeJS.Signals, isDone: (state: LocalMember["state"]) => boolean): Promise<void> {
    const member = this.#memberNamed(node);
    member.signal(name);
    const deadline = Date.now() + ACT_WITHIN_MS;
    while (!isDone(member.state) && Date.now() < deadline) {
      await sleep(LOOK_AGAIN_MS);
      await this.#looks.now();
    }
  }

  async #command(node: NodeId, command: string): Promise<void> {
    const member = this.#memberNamed(node);
    if (member.state !== "running")
      throw new UsageError("bad-act", `expected node ${node} to be running, but it is ${member.state}`);
    await postCommand(member.admin, member.commandNamed(command));
  }

  async #changeNetwork(act: NetworkAct): Promise<void> {
    const named = act.type === "cut" || act.type === "mend" ? act.nodes : act.type === "split" ? act.groups.flat() : [];
    for (const node of named) this.#memberNamed(node);
    const before = this.#network;
    this.#network = networkAfter(before, act, [...this.#members.keys()]);
    if (JSON.stringify(this.#network) !== JSON.stringify(before)) {
      this.networks = networksAfter(this.networks, { since: wallClock(), network: this.#network });
      this.#tell({ event: "network", act, ...this.#network });
    }
    for (const [id, member] of this.#members)
      for (const what of changesOf(id, before, this.#network)) member.noteFault(what);
    this.#changed();
    const told = Promise.all([...this.#members.values()].map((member) => member.tellFaults()));
    await Promise.race([told, sleep(ACT_WITHIN_MS, undefined, { ref: false })]);
  }

  #memberNamed(node: NodeId): LocalMember {
    const member = this.#members.get(node);
    if (member !== undefined) return member;
    throw new UsageError(
      "unknown-node",
      unexpected("the node", `one of ${[...this.#members.keys()].join(", ")}`, node),
    );
  }

  async #look(): Promise<void> {
    const alive = [...this.#members.values()].flatMap((member) => {
      const { pid } = member;
      return pid === null ? [] : [{ member, pid }];
    });
    const stopped = await stoppedAmong(alive.map(({ pid }) => pid));
    for (const { member, pid } of alive) if (member.pid === pid) member.observe(stopped.has(pid));
  }

  #changed(): void {
    this.revision += 1;
    const { nodes } = this.picture;
    this.#options.caretaker.note(nodes.flatMap(({ pid }) => pid ?? []));
    const agreement = agreementOf(nodes);
    const isNews = agreement !== null && agreement.leader !== this.#leader;
    if (this.#phase === "ready") {
      this.#leader = agreement?.leader ?? null;
      if (isNews) this.#tell({ event: "leader", ...agreement });
      this.#disagreement.note(opinionsOf(nodes));
    }
    this.#notify();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /**
   * Updates the summary, after a delay, if a delivery or decision has changed it. The rest of the picture is the same.
   */
  #reconsider(): void {
    this.#reconsidering ??= setTimeout(() => {
      this.#reconsidering = null;
      const { headline } = this.picture;
      if (headline === this.#headline) return;
      this.#headline = headline;
      this.#changed();
    }, HEADLINE_EVERY_MS).unref();
  }

  #tell(event: LifecycleEvent): void {
    if (this.#wasReady) this.#options.onEvent(event);
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  async #until(isTrue: () => boolean, withinMs: number): Promise<void> {
    const deadline = Date.now() + withinMs;
    while (!isTrue() && Date.now() < deadline) await this.#nextChange(deadline - Date.now());
  }

  /** Resolves when the picture has changed. New trace entries do not count, since there may be thousands of them. */
  #nextChange(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, withinMs));
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #whatIsMissing(withinMs: number): string {
    const { nodes } = this.picture;
    const silent = nodes.filter(({ process, view }) => process !== "running" || view === null).map(({ id }) => id);
    const views = nodes.map(({ id, view }) => `node ${id} follows ${view?.leader ?? "no leader"}`).join(", ");
    const missing =
      silent.length > 0 ? `no answer from node ${silent.join(", ")}` : `no agreement on a leader: ${views}`;
    return `the cluster is not ready after ${withinMs / 1_000} s (${missing}): try fewer members on this machine`;
  }
}

/**
 * Returns the time at which the condition will have been true for `forMs`, or infinity if it is false.
 * @param due the previous result
 */
function dueWhile(isTrue: boolean, due: number, forMs: number): number {
  return isTrue ? Math.min(due, Date.now() + forMs) : NEVER;
}

function whereabouts({ id, pid, address, admin, byzantine }: NodePicture) {
  return { id, pid, address, admin, ...(byzantine === undefined ? {} : { byzantine }) };
}
