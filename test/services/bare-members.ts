/**
 * Three members that are nothing but their instances. Messages go by lot, in order on each link; who serves, crashes and is cut off is
 * the test's to say, and so is the clock.
 */
import { vi } from "vitest";
import type { Envelope, Setting } from "../../src/cluster/services/algorithms.ts";
import type { Grant } from "../../src/cluster/services/api.ts";
import { MutexHandle } from "../../src/cluster/services/handles.ts";
import { Instances } from "../../src/cluster/services/instances.ts";
import type { LocalMutex } from "../../src/cluster/services/local-mutex.ts";
import type { NodeId, Tagged } from "../../src/core/protocol.ts";
import { type Random, random } from "../../src/core/random.ts";
import { newCounts } from "../../src/runtime/metrics.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";
import { memoryJournal } from "../journal/memory-journal.ts";
import { untraced } from "./untraced.ts";

export const IDS: readonly NodeId[] = [1, 2, 3];
const RECEIPT = { id: () => "", lost: null };

type Message = Parameters<Instances["receive"]>[1];

interface Running {
  readonly instances: Instances;
  readonly grants: Set<Grant>;
}

export class Cluster {
  readonly #running = new Map<NodeId, Running>();
  readonly #kept = new Map<NodeId, Map<string, unknown[]>>(IDS.map((id) => [id, new Map()]));
  #onTheWay: { from: NodeId; to: NodeId; envelope: Message }[] = [];
  #epoch = 0;
  #server: NodeId | null = null;
  readonly #cutOff = new Set<NodeId>();
  /** By name: the token of the last grant, whoever has it, and who that was. */
  readonly #last = new Map<string, Grant>();
  granted = 0;
  readonly #idle: NodeId[] = [];

  start(id: NodeId): this {
    const instances = this.#made(id);
    this.#running.set(id, { instances, grants: new Set() });
    instances.start();
    return this;
  }

  crash(id: NodeId): void {
    this.#running.get(id)?.instances.stop();
    this.#running.delete(id);
    this.#onTheWay = this.#onTheWay.filter(({ from, to }) => from !== id && to !== id);
    if (this.#server === id) this.#server = null;
  }

  runs(id: NodeId): boolean {
    return this.#running.has(id);
  }

  /** Whoever served is told first that it does not any more, as its lease sees to it. */
  serve(id: NodeId): this {
    if (this.#server !== null) this.instances(this.#server).tell({ type: "deposed", epoch: this.#epoch });
    this.#epoch += 1;
    this.#server = id;
    for (const [id, { instances }] of this.#running)
      if (!this.#cutOff.has(id)) for (const command of this.#news()) instances.tell(command);
    return this;
  }

  /** It goes on, and neither hears of the others nor they of it. */
  cutOff(id: NodeId): void {
    this.#cutOff.add(id);
    this.#onTheWay = this.#onTheWay.filter(({ from, to }) => from !== id && to !== id);
  }

  instances(id: NodeId): Instances {
    return (this.#running.get(id) as Running).instances;
  }

  openAt(id: NodeId): string[] {
    return this.instances(id).all.map(({ setting }) => setting.name);
  }

  slots(id: NodeId): string[] {
    return [...(this.#kept.get(id) as Map<string, unknown[]>).keys()];
  }

  /** Asks for the lock, and takes down what it gets. */
  acquire(id: NodeId, name: string): void {
    const { grants, instances } = this.#running.get(id) as Running;
    const handle = new MutexHandle(() => instances.use(mutex(name)).local as LocalMutex);
    const noted = (grant: Grant): void => {
      const before = this.#last.get(name);
      if (before?.isHeld === true) throw new Error(`two hold ${name}: ${before.token} and ${grant.token}`);
      if (before !== undefined && before.token >= grant.token)
        throw new Error(`${name} had ${before.token} before ${grant.token}`);
      this.#last.set(name, grant);
      this.granted += 1;
      grants.add(grant);
    };
    // What becomes of it if its member crashes, or the lock is lost, is not looked at.
    void handle.acquire({ timeoutMs: 60_000 }).then(noted, (error: unknown) => this.#noteError(error as Error));
  }

  async release(id: NodeId): Promise<void> {
    const { grants } = this.#running.get(id) as Running;
    for (const grant of grants) await grant.release();
    grants.clear();
  }

  readonly errors: string[] = [];

  #noteError(error: Error): void {
    if ((error as { code?: string }).code !== "grant-lost") this.errors.push(error.message);
  }

  /** All that is on its way arrives, in the order of each link, and time goes on. */
  async goOn(ms: number, lot: Random = random(1)): Promise<this> {
    for (let left = ms; left >= 0; left -= 10) {
      for (let most = 1_000; most > 0 && this.#onTheWay.length > 0; most--) {
        this.#deliverOne(lot);
        await Promise.resolve(); // The journal is as fast as that.
      }
      await vi.advanceTimersByTimeAsync(10);
    }
    return this;
  }

  deliver(lot: Random, most: number): void {
    for (let count = 0; count < most && this.#onTheWay.length > 0; count++) this.#deliverOne(lot);
  }

  /** How often that member has agreed to put something away. */
  saidIdle(id: NodeId): number {
    return this.#idle.filter((from) => from === id).length;
  }

  stop(): void {
    for (const id of IDS) if (this.runs(id)) this.crash(id);
  }

  #deliverOne(lot: Random): void {
    const { from, to } = lot.pick(this.#onTheWay);
    const first = this.#onTheWay.findIndex((other) => other.from === from && other.to === to);
    for (const { envelope } of this.#onTheWay.splice(first, 1))
      this.#running.get(to)?.instances.receive(from, envelope);
  }

  #areLinked(one: NodeId, other: NodeId): boolean {
    return !this.#cutOff.has(one) && !this.#cutOff.has(other);
  }

  #news(): Tagged[] {
    return this.#server === null ? [] : [{ type: "elected", leader: this.#server, epoch: this.#epoch } as Tagged];
  }

  #made(self: NodeId): Instances {
    const send = (to: NodeId, envelope: Envelope) => {
      if ("content" in envelope && "body" in envelope.content && envelope.content.body.type === "idle")
        this.#idle.push(self);
      if (this.runs(self) && this.runs(to) && this.#areLinked(self, to))
        this.#onTheWay.push({ from: self, to, envelope: envelope as Message });
      return RECEIPT;
    };
    return new Instances({
      platform: realPlatform,
      self,
      peers: IDS.filter((id) => id !== self),
      maxWaiters: 10,
      counts: newCounts(),
      maxInstances: 100,
      timing: "default",
      journal: memoryJournal(this.#kept.get(self)),
      log: { info() {}, warn() {}, error() {}, once() {} },
      news: () => this.#news(),
      isOnLog: () => false,
      send,
      insist: send,
      multicast: (members, envelope) => {
        for (const to of members) send(to, envelope);
      },
      trace: untraced,
      publish() {},
      hasRoom: () => true,
      bounds: () => ({ payloadBytes: 60_000, batchBytes: 60_000 }),
      checkService() {},
      onExhausted: () => void this.serve(self),
      give() {},
      onRefused: (_setting, by, why) => void this.errors.push(`refused by ${by}: ${why}`),
      onFull() {},
      onStray() {},
      onFatal(error) {
        throw error;
      },
    });
  }
}

export const mutex = (name: string): Setting => ({ kind: "mutex", name, algorithm: "elected-server", options: "{}" });
