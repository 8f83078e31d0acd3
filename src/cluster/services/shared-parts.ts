/**
 * What a member has once for all its elections, locks and channels: a failure detector, and an election of who serves. They are parts of
 * the system of an elected server, and run its wires; those of each instance run with it (`instance.ts`).
 */
import { equal } from "../../core/plain.ts";
import type { NodeId, Tagged, Vocabulary } from "../../core/protocol.ts";
import type { AnyProtocol } from "../../protocols/index.ts";
import { watching } from "../../protocols/membership/family/watching.ts";
import { monitoredElectedServer } from "../../protocols/mutex/elected-server/elected-server.ts";
import type { MemberList } from "../../protocols/service/coordination-service/member-words.ts";
import { Host } from "../../runtime/host.ts";
import type { Journal } from "../../runtime/journal/journal.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import type { SendResult } from "../../runtime/transport/tcp.ts";
import type { Envelope } from "./algorithms.ts";
import type { MemberEvent } from "./api.ts";
import type { AlgorithmEvent } from "./engine.ts";
import { slotOf } from "./instance.ts";
import { LockServer } from "./lock-server.ts";
import type { MemberTrace } from "./member-trace.ts";
import { UNNAMED } from "./unrecorded.ts";
import { by, wired } from "./wired.ts";

export interface SharedPartsOptions {
  readonly platform: Platform;
  readonly self: NodeId;
  /** Of the list that the cluster was founded with; none of a member that came later. */
  readonly peers: readonly NodeId[];
  /** The other members, as far as they are known now. */
  readonly known: readonly NodeId[];
  readonly detector: AnyProtocol;
  /** Null where this member keeps no journal. */
  readonly leadership: AnyProtocol | null;
  readonly journal: Journal | null;
  readonly trace: MemberTrace;
  send(to: NodeId, envelope: Envelope): SendResult;
  /** What a shared part has emitted, to every instance. */
  tell(event: AlgorithmEvent): void;
  heard(node: NodeId): void;
  publish(event: MemberEvent): void;
  onFatal(error: Error): void;
}

/** More often is of no use to the detector. */
const HEAR_EVERY_MS = 50;
/** An election among others takes less, if they can hold one. */
const HAND_OVER_MS = 500;
const LOOK_EVERY_MS = 2;

export class SharedParts {
  readonly #options: SharedPartsOptions;
  #detector: Host<Vocabulary>;
  /** Of the other members: all that there are, and those that vote; whether this one does. */
  #others: readonly NodeId[];
  #voters: readonly NodeId[];
  readonly #leadership: Host<Vocabulary> | null;
  readonly #suspected = new Set<NodeId>();
  /** Peers that have been heard since this member began: of the others nothing is known, suspected or not. */
  readonly #met = new Set<NodeId>();
  #runs = false;
  readonly #heardAt = new Map<NodeId, number>();
  readonly #served: LockServer;
  /** The member itself is told of suspicions as an algorithm is. */
  readonly #member = wired(
    "member",
    watching("member"),
    by({ suspect: ({ node }) => this.#suspected.add(node), restore: ({ node }) => this.#suspected.delete(node) }),
  );

  constructor(options: SharedPartsOptions) {
    this.#options = options;
    this.#others = options.known;
    this.#voters = [options.self, ...options.known];
    this.#detector = this.#watching(this.#others);
    const { leadership, peers, self } = options;
    this.#served = new LockServer({
      ...options,
      standing: () => ({ self, leader: this.leader, isSettled: this.#leadership?.isSettled === true }),
      onOverdue: () => this.beginEpoch(),
    });
    this.#leadership =
      leadership && this.#host("leadership", leadership, peers, (event, until) => this.#served.onEvent(event, until));
  }

  get leader(): NodeId | null {
    return this.#leadership?.view.leader ?? null;
  }

  /** Members that can be heard of, this one among them. */
  get reachable(): number {
    return 1 + this.reachablePeers.length;
  }

  /** Whether a majority of those that vote can be heard of. */
  get hasQuorum(): boolean {
    const { self } = this.#options;
    const heard = this.#voters.filter((node) => node === self || this.#isReachable(node));
    return 2 * heard.length > this.#voters.length;
  }

  /** Peers that can be heard of; those that vote first. */
  get reachablePeers(): readonly NodeId[] {
    const reachable = this.#others.filter((node) => this.#isReachable(node));
    const votes = (node: NodeId): boolean => this.#voters.includes(node);
    return [...reachable.filter(votes), ...reachable.filter((node) => !votes(node))];
  }

  #isReachable(node: NodeId): boolean {
    return this.#met.has(node) && !this.#suspected.has(node);
  }

  /** A clause; empty while there is a majority. */
  get whyNoQuorum(): string {
    if (this.hasQuorum) return "";
    return `only ${this.reachable} of ${this.#members} members can be reached, and a majority is needed`;
  }

  isSuspected(node: NodeId): boolean {
    return this.#suspected.has(node);
  }

  /** What an instance that begins is to know. */
  news(): readonly AlgorithmEvent[] {
    const suspected = this.#options.peers.filter((node) => this.#suspected.has(node) || !this.#others.includes(node));
    return [...suspected.map(suspicionOf), ...this.#served.news];
  }

  /** A command of a wire. On network and disk the election is called `leadership`. */
  give(part: string, command: Tagged): void {
    if (part === "election" && this.#runs) this.#leadership?.command(command);
  }

  start(): void {
    this.#runs = true;
    this.#leadership?.start(); // First: the members that the detector suspects as it starts, by a farewell that came early, are told to it.
    this.#detector.start();
  }

  receive(from: NodeId, { type, body }: Extract<Envelope, { type: "detector" | "leadership" }>): void {
    this.#meet(from);
    if (type === "leadership") return this.#leadership?.receive(from, body as never, UNNAMED);
    this.#detector.receive(from, body as never, UNNAMED);
    if (!this.#suspected.has(from)) this.#options.heard(from);
  }

  /** A member that sends anything lives, though its beats may wait behind that. */
  hear(node: NodeId): void {
    this.#meet(node);
    const now = this.#options.platform.clock.now();
    if (!this.#runs || this.#suspected.has(node) || now - (this.#heardAt.get(node) ?? 0) < HEAR_EVERY_MS) return;
    this.#heardAt.set(node, now);
    this.#detector.command({ type: "hear", node });
  }

  /** Another is to serve. If this member did, it stays until there is one, which may have questions. */
  async handOver(): Promise<void> {
    const { self } = this.#options;
    const served = this.leader === self;
    this.#leadership?.command({ type: "resign" });
    const { peers } = this.#options;
    const canBeSucceeded = 2 * peers.filter((node) => this.#isReachable(node)).length > peers.length + 1;
    if (!served || !canBeSucceeded) return;
    const { clock, timers } = this.#options.platform;
    const until = clock.now() + HAND_OVER_MS;
    const isSucceeded = (): boolean => this.leader !== null && this.leader !== self;
    while (!isSucceeded() && this.#runs && clock.now() < until) await sleep(timers, LOOK_EVERY_MS);
  }

  /** The others need not wait for this member's beats. */
  sayFarewell(): void {
    this.#detector.command({ type: "leave" });
  }

  /** Before anything is granted: whether this member's service has ended by the clock. */
  checkService(): void {
    this.#served.check();
  }

  /** What was granted in this epoch is no longer known: if this member serves, another begins, with the member that is to serve in it. */
  beginEpoch(): void {
    this.#served.depose();
    if (this.leader === this.#options.self) this.#along("mutex", { type: "exhausted" }); // As any lock may say it.
  }

  stop(): void {
    this.#runs = false;
    this.#served.stop();
    this.#detector.stop();
    this.#leadership?.stop();
  }

  get #members(): number {
    return this.#others.length + 1;
  }

  /** The members are these from now on. */
  watch({ members, voters }: Pick<MemberList, "members" | "voters">): void {
    const { self } = this.#options;
    const before = this.#others;
    this.#watchingQuorum(() => {
      this.#others = members.map(({ member }) => member).filter((member) => member !== self);
      this.#voters = voters;
    });
    if (equal(before, this.#others)) return;
    this.#detector.stop();
    this.#detector = this.#watching(this.#others);
    if (this.#runs) this.#detector.start();
    for (const node of this.#suspected) {
      if (!this.#others.includes(node)) this.#suspected.delete(node);
      else if (this.#runs) this.#detector.command({ type: "suspect", node });
    }
    for (const node of before) if (!this.#others.includes(node)) this.#toFounders(suspicionOf(node)); // What the founders run counts on it no more.
  }

  #watching(others: readonly NodeId[]): Host<Vocabulary> {
    return this.#host("detector", this.#options.detector, others, (event) => this.#detected(event));
  }

  #meet(node: NodeId): void {
    if (!this.#met.has(node)) this.#watchingQuorum(() => this.#met.add(node));
  }

  #watchingQuorum(change: () => void): void {
    const had = this.hasQuorum;
    change();
    if (had === this.hasQuorum) return;
    const counts = { reachable: this.reachable, members: this.#members };
    this.#options.publish({ type: had ? "quorum-lost" : "quorum-gained", ...counts });
  }

  #host(
    type: "detector" | "leadership",
    protocol: AnyProtocol,
    peers: readonly NodeId[],
    onEvent: (event: AlgorithmEvent, until: number | null) => void,
  ): Host<Vocabulary> {
    const { platform, self, send, journal, trace, onFatal } = this.#options;
    return new Host<Vocabulary>({
      platform,
      protocol,
      self,
      peers,
      send: (to, body) => send(to, { type, body }),
      trace: trace.of([type]),
      slot: slotOf(protocol, journal, type),
      onEvent,
      ...(type === "leadership" ? { afterStep: () => this.#served.lookAgain() } : {}),
      onFatal,
    });
  }

  #detected(event: AlgorithmEvent): void {
    const node = event.node as NodeId;
    const wasSuspected = this.#suspected.has(node);
    this.#watchingQuorum(() => {
      this.#member.onShared(event);
      const isSuspected = this.#suspected.has(node);
      if (isSuspected === wasSuspected) return; // It was told to a detector that has just begun.
      this.#toFounders(event);
      this.#options.publish({ type: isSuspected ? "peer-suspected" : "peer-restored", node });
    });
  }

  /** What is found out of a founder, along the wires to what runs among them. */
  #toFounders(event: AlgorithmEvent): void {
    if (!this.#options.peers.includes(event.node as NodeId)) return;
    this.#options.tell(event);
    this.#along("detector", event);
  }

  /** The wires to parts that are here: locks have their own. */
  #along(part: string, event: AlgorithmEvent): void {
    monitoredElectedServer.wires[part]?.[event.type]?.(event, (to: string, command: Tagged) => this.give(to, command));
  }
}

const suspicionOf = (node: NodeId): AlgorithmEvent => ({ type: "suspected", node });
