/** A member's failure detector: which other members are reachable, and whether they are a majority. */
import { equal } from "../../core/plain.ts";
import type { NodeId, Tagged } from "../../core/protocol.ts";
import type { AnyProtocol } from "../../protocols/entry.ts";
import type { MemberList } from "../../protocols/service/coordination-service/member-words.ts";
import { Host } from "../../runtime/host.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { SendResult } from "../../runtime/transport/tcp.ts";
import type { MemberEvent } from "./api.ts";
import type { Envelope } from "./envelope.ts";
import type { MemberTrace } from "./member-trace.ts";
import { UNNAMED } from "./unrecorded.ts";

export interface MemberDetectorOptions {
  readonly platform: Platform;
  readonly self: NodeId;
  /** The other members that are known when this one starts. */
  readonly known: readonly NodeId[];
  readonly protocol: AnyProtocol;
  readonly trace: MemberTrace;
  send(to: NodeId, envelope: Envelope): SendResult;
  /** Called when a member becomes suspected, or is no longer suspected. */
  onSuspicion(node: NodeId, isSuspected: boolean): void;
  publish(event: MemberEvent): void;
  onFatal(error: Error): void;
}

/** The minimum interval between signs of life that are passed to the detector, which does not need more. */
const HEAR_EVERY_MS = 50;

export class MemberDetector {
  readonly #options: MemberDetectorOptions;
  #host: Host<never>;
  /** The other members, and the voters among all members. */
  #others: readonly NodeId[];
  #voters: readonly NodeId[];
  readonly #suspected = new Set<NodeId>();
  /**
   * Members that have sent something since this one started. It is not known whether the others are running, even if
   * they are not suspected.
   */
  readonly #met = new Set<NodeId>();
  readonly #heardAt = new Map<NodeId, number>();
  #runs = false;

  constructor(options: MemberDetectorOptions) {
    this.#options = options;
    this.#others = options.known;
    this.#voters = [options.self, ...options.known];
    this.#host = this.#watching(this.#others);
  }

  /** The number of reachable members, including this one. */
  get reachable(): number {
    return 1 + this.reachablePeers.length;
  }

  /** Whether a majority of the voters is reachable. */
  get hasQuorum(): boolean {
    const { self } = this.#options;
    const reached = this.#voters.filter((node) => node === self || this.#isReachable(node));
    return 2 * reached.length > this.#voters.length;
  }

  /** The other members that are reachable, voters first. */
  get reachablePeers(): readonly NodeId[] {
    const reachable = this.#others.filter((node) => this.#isReachable(node));
    const votes = (node: NodeId): boolean => this.#voters.includes(node);
    return [...reachable.filter(votes), ...reachable.filter((node) => !votes(node))];
  }

  /** Why no majority is reachable, as a clause. Empty if one is reachable. */
  get whyNoQuorum(): string {
    if (this.hasQuorum) return "";
    return `only ${this.reachable} of ${this.#others.length + 1} members can be reached, and a majority is needed`;
  }

  get suspected(): readonly NodeId[] {
    return [...this.#suspected];
  }

  isSuspected(node: NodeId): boolean {
    return this.#suspected.has(node);
  }

  start(): void {
    this.#runs = true;
    this.#host.start();
  }

  receive(from: NodeId, body: Tagged): void {
    this.#meet(from);
    this.#host.receive(from, body as never, UNNAMED);
  }

  /**
   * Called for each message. Any message proves that its sender is alive, even if its heartbeats are queued behind it.
   */
  hear(node: NodeId): void {
    this.#meet(node);
    const now = this.#options.platform.clock.now();
    if (!this.#runs || this.#suspected.has(node) || now - (this.#heardAt.get(node) ?? 0) < HEAR_EVERY_MS) return;
    this.#heardAt.set(node, now);
    this.#command({ type: "hear", node } as Tagged);
  }

  /** Announces that other members no longer need to wait for this member's heartbeats. */
  sayFarewell(): void {
    this.#command({ type: "leave" });
  }

  stop(): void {
    this.#runs = false;
    this.#host.stop();
  }

  /** Replaces the member list. */
  watch({ members, voters }: Pick<MemberList, "members" | "voters">): void {
    const { self } = this.#options;
    const before = this.#others;
    this.#watchingQuorum(() => {
      this.#others = members.map(({ member }) => member).filter((member) => member !== self);
      this.#voters = voters;
    });
    if (equal(before, this.#others)) return;
    this.#host.stop();
    this.#host = this.#watching(this.#others);
    if (this.#runs) this.#host.start();
    for (const node of this.#suspected) {
      if (!this.#others.includes(node)) this.#suspected.delete(node);
      else if (this.#runs) this.#command({ type: "suspect", node } as Tagged);
    }
  }

  #isReachable(node: NodeId): boolean {
    return this.#met.has(node) && !this.#suspected.has(node);
  }

  #command(command: Tagged): void {
    this.#host.command(command);
  }

  #meet(node: NodeId): void {
    if (!this.#met.has(node)) this.#watchingQuorum(() => this.#met.add(node));
  }

  #watchingQuorum(change: () => void): void {
    const had = this.hasQuorum;
    change();
    if (had === this.hasQuorum) return;
    const counts = { reachable: this.reachable, members: this.#others.length + 1 };
    this.#options.publish({ type: had ? "quorum-lost" : "quorum-gained", ...counts });
  }

  #watching(peers: readonly NodeId[]): Host<never> {
    const { platform, self, protocol, send, trace, onFatal } = this.#options;
    return new Host<never>({
      platform,
      protocol: protocol as never,
      self,
      peers,
      send: (to, body) => send(to, { type: "detector", body }),
      trace: trace.of(["detector"]),
      onEvent: (event: Tagged & { readonly node?: NodeId }) => this.#detected(event),
      onFatal,
    });
  }

  #detected({ type, node }: Tagged & { readonly node?: NodeId }): void {
    if (node === undefined) return;
    const isSuspected = type === "suspected";
    if (isSuspected === this.#suspected.has(node)) return; // A new detector receives the known suspicions as commands.
    this.#watchingQuorum(() => {
      if (isSuspected) this.#suspected.add(node);
      else this.#suspected.delete(node);
      this.#options.onSuspicion(node, isSuspected);
      this.#options.publish({ type: isSuspected ? "peer-suspected" : "peer-restored", node });
    });
  }
}
