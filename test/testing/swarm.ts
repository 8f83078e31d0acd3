/**
 * Members that use everything at once, under random faults. The guarantees hold at every moment, and eventually
 * everything works again.
 */
import { type Channel, CoordinationError, type Member, type NodeId, type Order } from "../../src/index.ts";
import { type FaultKind, type ProcessTools, simulate, type World } from "../../src/testing/index.ts";
import { channelProblems, type Sent, type Witness } from "./delivered.ts";
import { ExclusiveUse } from "./exclusive-use.ts";

const locks = ["stock", "invoice"];
const election = "report";
const orders: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];
const FAULTS_MS = 6_000;
/** The kinds of faults that existed when the seeds in the tests were found. */
const kinds: readonly FaultKind[] = ["crash", "kill", "pause", "partition", "cut", "slow", "lossy", "slow-disk"];
/** By then, all faults have ended, since a fault lasts at most 3 s. */
const MENDED_MS = FAULTS_MS + 3_500;
/** How long recovery may take after that. */
const WELL_WITHIN_MS = 60_000;
const SPREADS_WITHIN_MS = 500;

/** A channel that is rarely used. It is idle between uses, so each member leaves its group. */
const ASIDE = "aside";
/** A channel that members try to open with different orders. */
const CONTESTED = "contested";
/** A channel with a slow reader, which blocks senders once 4 MiB are unread. */
const FEED = "feed";
const FEED_TEXT = "x".repeat(50_000);
const FEED_MESSAGES = 120;
/** Less than a channel's window for a member. Messages that do not fit are resent. */
const SMALL_QUEUE_BYTES = 256 * 1024;

/** The events that occurred in a run. A test uses them to check that the run was meaningful. */
export interface SwarmResult {
  readonly grants: number;
  readonly deliveries: number;
  readonly faults: number;
  /** How many times a name was closed on a member that had opened it before. */
  readonly putAway: number;
  /** How many times a member rejected another member's settings for a name, or had its own rejected. */
  readonly refused: number;
  /** How many times a sender found that it was waiting for a reader. */
  readonly slow: number;
  readonly world: World;
}

class Swarm {
  readonly exclusive: ExclusiveUse;
  readonly witnesses: Witness[] = [];
  readonly neverSent = new Set<string>();
  isEnding = false;
  readonly world: World;
  #runs = 0;
  readonly order: Order;
  /** Whether there is a lot of traffic and a slow reader. */
  readonly #isCrowded: boolean;
  readonly #seen = { putAway: 0, refused: 0, slow: 0 };

  constructor(seed: number, members: number) {
    this.#isCrowded = seed % 8 === 3;
    this.order = orders[seed % orders.length] as Order;
    this.world = simulate({
      members,
      seed,
      faults: { kinds, forMs: FAULTS_MS },
      join: this.#isCrowded ? { limits: { maxQueueBytes: SMALL_QUEUE_BYTES } } : {},
      program: (member, tools) => this.#live(member, tools),
    });
    this.exclusive = new ExclusiveUse(() => this.world.now());
  }

  async run(): Promise<SwarmResult> {
    const { world } = this;
    await world.run(async () => {
      await world.sleep(MENDED_MS);
      this.isEnding = true;
      await this.#endsWell();
      const problems = channelProblems(this.order, this.witnesses, this.neverSent);
      if (problems.length > 0) throw new Error(problems.slice(0, 5).join("\n"));
    });
    const deliveries = this.witnesses.reduce((sum, { messages }) => sum + messages.length, 0);
    return { grants: this.exclusive.count, deliveries, faults: world.plan.length, ...this.#seen, world };
  }

  /** Runs a process's activities until the process ends. */
  async #live(member: Member, tools: ProcessTools): Promise<void> {
    this.#runs += 1;
    const channel = member.channel<Sent>("news", { order: this.order });
    const witness: Witness = {
      name: `run ${this.#runs} (node ${member.id})`,
      node: member.id,
      messages: [],
      views: [],
    };
    this.witnesses.push(witness);
    await Promise.all([
      this.#lock(member, tools),
      this.#lead(member, tools),
      this.#read(channel, witness),
      this.#view(channel, witness),
      this.#send(channel, tools, witness),
      this.#useAside(member, tools),
      this.#contest(member, tools),
      this.#hearRefusals(member),
      ...(this.#isCrowded ? [this.#feed(member, tools), this.#readSlowly(member, tools)] : []),
    ]);
  }

  /** Uses a channel for a moment and closes it. Between two uses, it is idle long enough to be garbage-collected. */
  async #useAside(member: Member, tools: ProcessTools): Promise<void> {
    let wasThere = false;
    const look = (): void => {
      const isThere = isOpen(member, ASIDE);
      if (wasThere && !isThere) this.#seen.putAway += 1;
      wasThere = isThere;
    };
    while (!this.isEnding) {
      await unlessCoordination(async () => {
        const channel = member.channel<string>(ASIDE, { order: this.order });
        await unlessCoordination(() => channel.send("a word", { timeoutMs: 1_000 }));
        await channel.close();
      });
      for (const until = tools.now() + between(tools, 100, 4_000); tools.now() < until && !this.isEnding; look())
        await tools.sleep(100);
    }
    while (isOpen(member, ASIDE)) await tools.sleep(100);
    look();
  }

  /**
   * Opens the contested channel with an order that depends on the member. Later attempts to open it with a different
   * order are rejected.
   */
  async #contest(member: Member, tools: ProcessTools): Promise<void> {
    const order = member.id % 2 === 0 ? "fifo" : "causal";
    while (!this.isEnding) {
      await unlessCoordination(async () => {
        const channel = member.channel<string>(CONTESTED, { order });
        await unlessCoordination(() => channel.send("a message", { timeoutMs: 500 }));
        await channel.close();
      });
      await tools.sleep(between(tools, 100, 3_000));
    }
  }

  async #hearRefusals(member: Member): Promise<void> {
    for await (const { type } of member.events()) if (type === "instance-refused") this.#seen.refused += 1;
  }

  /** Sends as much as possible. */
  async #feed(member: Member, tools: ProcessTools): Promise<void> {
    const channel = member.channel<string>(FEED, { order: "fifo" });
    for (let number = 1; number <= FEED_MESSAGES && !this.isEnding; number++) {
      void unlessCoordination(() => channel.send(FEED_TEXT, { timeoutMs: 1_000 }));
      const { slow = [] } = member.status().instances.find(({ name }) => name === FEED)?.channel ?? {};
      if (slow.length > 0) this.#seen.slow += 1;
      await tools.sleep(between(tools, 10, 120));
    }
  }

  async #readSlowly(member: Member, tools: ProcessTools): Promise<void> {
    for await (const _ of member.channel<string>(FEED, { order: "fifo" }).read())
      if (!this.isEnding) await tools.sleep(between(tools, 50, 400));
  }

  async #lock(member: Member, tools: ProcessTools): Promise<void> {
    while (!this.isEnding) {
      const name = locks[Math.floor(tools.random() * locks.length)] as string;
      await unlessCoordination(async () => {
        const grant = await member.mutex(name).acquire({ timeoutMs: between(tools, 200, 3_000) });
        this.exclusive.enter(`the lock ${name}`, member.id, grant, tools.now, () => this.#runsStill(member));
        await tools.sleep(between(tools, 1, 400));
        await grant.release();
      });
      await tools.sleep(between(tools, 1, 300));
    }
  }

  async #lead(member: Member, tools: ProcessTools): Promise<void> {
    while (!this.isEnding) {
      await unlessCoordination(() =>
        member.election(election).lead(async (leadership) => {
          const { signal } = leadership;
          this.exclusive.enter(`the election ${election}`, member.id, leadership, tools.now, () =>
            this.#runsStill(member),
          );
          await tools.sleep(between(tools, 100, 2_000), undefined, { signal });
        }),
      );
      await tools.sleep(between(tools, 1, 1_000));
    }
  }

  async #send(channel: Channel<Sent>, tools: ProcessTools, witness: Witness): Promise<void> {
    for (let number = 1; !this.isEnding; number++) {
      const read: Record<string, number> = {};
      for (const { payload } of witness.messages) read[payload.sender] = payload.number;
      const sent: Sent = { sender: witness.name, number, read };
      await unlessCoordination(
        () => channel.send(sent, { timeoutMs: between(tools, 500, 5_000) }),
        ({ phase }) => {
          if (phase === "never-sent") this.neverSent.add(`${sent.sender}#${number}`);
        },
      );
      await tools.sleep(between(tools, 20, 400));
    }
  }

  async #read(channel: Channel<Sent>, { messages }: Witness): Promise<void> {
    for await (const message of channel.read()) messages.push(message);
  }

  async #view(channel: Channel<Sent>, { views }: Witness): Promise<void> {
    for await (const view of channel.views()) views.push(view);
  }

  /**
   * After all faults, checks that every member acquires every lock, sees the same view, and receives each member's
   * messages.
   */
  async #endsWell(): Promise<void> {
    const { world } = this;
    const all = [...world.members];
    const within = { timeoutMs: WELL_WITHIN_MS };
    await Promise.all(all.map((id) => world.member(id).ready(within)));
    for (const name of locks)
      await Promise.all(
        all.map((id) =>
          world
            .member(id)
            .mutex(name)
            .use(() => {}, within),
        ),
      );
    await this.#until(() => all.every((id) => this.#sees(id, all)), "one view of all members");
    await this.#hearEachOther(all);
    await this.#until(
      () => all.every((id) => !isOpen(world.member(id), ASIDE)),
      "all members to close the idle channel",
    );
  }

  /**
   * Makes all members send until all of them have delivered every message. A message does not count if it was sent in a
   * view that excludes a member.
   */
  async #hearEachOther(all: readonly NodeId[]): Promise<void> {
    const limit = this.world.now() + WELL_WITHIN_MS;
    for (let round = 1; ; round++) {
      const said = await Promise.all(all.map((id) => this.#says(id, round, limit)));
      await this.world.sleep(SPREADS_WITHIN_MS);
      const heard = all.map((id) => new Set(this.#latest(id).messages.map(({ payload }) => payload.sender)));
      if (heard.every((senders) => said.every((sender) => senders.has(sender)))) return;
      if (this.world.now() > limit)
        throw new Error(`expected all to deliver each message within ${WELL_WITHIN_MS} ms after all faults have ended`);
    }
  }

  #sees(id: NodeId, all: readonly NodeId[]): boolean {
    const { state, members } = this.#latest(id).views.at(-1) ?? { state: "outside", members: [] };
    return state === "member" && members.length === all.length;
  }

  /** Sends until a message is acknowledged. */
  async #says(id: NodeId, round: number, limit: number): Promise<string> {
    const sender = `last words ${round} of node ${id}`;
    const channel = this.world.member(id).channel<Sent>("news", { order: this.order });
    for (let number = 1; ; number++) {
      try {
        await channel.send({ sender, number, read: {} }, { timeoutMs: Math.max(1, limit - this.world.now()) });
        return sender;
      } catch (error) {
        if (!(error instanceof CoordinationError) || error.code === "send-timeout") throw error;
      }
    }
  }

  #latest(id: NodeId): Witness {
    return this.witnesses.findLast(({ node }) => node === id) as Witness;
  }

  async #until(isSo: () => boolean, what: string): Promise<void> {
    const limit = this.world.now() + WELL_WITHIN_MS;
    while (!isSo()) {
      if (this.world.now() > limit) throw new Error(`expected ${what} within ${WELL_WITHIN_MS} ms after all is mended`);
      await this.world.sleep(50);
    }
  }

  #runsStill(member: Member): boolean {
    return this.world.isUp(member.id) && this.world.member(member.id) === member;
  }
}

export const swarm = (seed: number, members = 2 + (seed % 4)): Promise<SwarmResult> => new Swarm(seed, members).run();

const isOpen = (member: Member, name: string): boolean =>
  member.status().instances.some((instance) => instance.name === name);

const between = ({ random }: ProcessTools, least: number, most: number): number => least + random() * (most - least);

/** Expected errors do not end a program. */
async function unlessCoordination(
  act: () => unknown,
  see: (error: CoordinationError) => void = () => {},
): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (error instanceof CoordinationError) see(error);
    else if ((error as Error).name !== "AbortError") throw error;
  }
}
