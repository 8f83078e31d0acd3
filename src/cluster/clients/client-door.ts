/**
 * The clients connected to this member. Each client runs its own session, under its own client id. This member proposes
 * the client's commands to the log, answers its reads, and sends it the events that concern it. A client can move to
 * another member at any time, since this member stores only the names that the client follows.
 */
import type { NodeId } from "../../core/protocol.ts";
import { readProposal } from "../../protocols/service/coordination-service/apply.ts";
import { memberOperationShapes } from "../../protocols/service/coordination-service/member-words.ts";
import {
  FIRST_CLIENT,
  isClient,
  OWN_NAMES,
  type Proposal,
  type Query,
  type Revision,
  type SessionId,
} from "../../protocols/service/coordination-service/operations.ts";
import type { ClientCounts } from "../../runtime/metrics.ts";
import type { Timer } from "../../runtime/platform/platform.ts";
import type { Told, Topic } from "../services/state/service.ts";
import type { ClientAnswered, ServiceHost } from "../services/state/service-host.ts";
import { ClientNumbers } from "./client-numbers.ts";
import { ClientRoom, type Occupant } from "./client-room.ts";
import {
  CLIENT_VERSION,
  type ClientWord,
  clientWordShape,
  inFragments,
  MAX_FOLLOWED,
  type MemberWord,
  type Role,
  readWord,
  type ToldClient,
} from "./client-words.ts";
import { isOfClients, mayBeRead } from "./own-names.ts";

/** A client's connection. */
export interface ClientWire {
  send(text: string): void;
  /** The number of bytes that have been sent but are still buffered. */
  readonly queuedBytes: number;
  /** Requests a sign of life, which the client's runtime sends even if its program is busy. */
  probe(): void;
  /** Closes the connection after the last message has been sent. */
  close(): void;
}

/** Returns the role of a client with this token, or null if it has none. */
export type RoleOf = (token: string | null) => Role | null;

export interface ClientDoorOptions {
  readonly service: ServiceHost;
  readonly counts: ClientCounts;
}

/**
 * A member that has not known of a leader for this long disconnects its clients, so that they can move to a different
 * member before their sessions expire.
 */
const LEADERLESS_MS = 750;
/** The maximum number of pending reads per client. */
const MAX_READS = 1_024;
/** A client with more unread bytes than this is disconnected. */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024;

/** The sessions of the clients that are connected to this member. */
export class ClientDoor {
  readonly #options: ClientDoorOptions;
  readonly #guests = new Set<Guest>();
  readonly room: ClientRoom;
  readonly #byClient = new Map<NodeId, Guest>();
  readonly #bySession = new Map<SessionId, Guest>();
  readonly #followers = new Map<string, Set<Guest>>();
  readonly #forget: () => void;
  readonly numbers: ClientNumbers;
  #leaderless: Timer | null = null;
  /** Whether this member cannot answer requests because it knows of no leader. */
  isLeaderless = false;

  constructor(options: ClientDoorOptions) {
    this.#options = options;
    this.numbers = new ClientNumbers(options.service);
    this.room = new ClientRoom(options.service.platform, options.counts);
    this.#led(options.service.leader);
    this.#forget = options.service.listen((event) => this.#hear(event));
    options.service.onClientAnswered = (answered) => this.#answer(answered);
    options.service.isFollowedByClients = (map) => this.#followers.size > 0 && this.#followers.has(`map ${map}`);
  }

  /**
   * @param flaw why the client's certificate was rejected, if it was
   * @returns the object that handles the connection
   */
  accept(wire: ClientWire, roleOf: RoleOf, flaw: string | null = null): Guest {
    const { counts, service } = this.#options;
    const guest = new Guest(wire, roleOf, { door: this, service, counts, flaw });
    counts.connections += 1;
    this.#guests.add(guest);
    this.room.enter(guest);
    return guest;
  }

  /** Disconnects clients whose role has changed. They reconnect with their new role. */
  recheck(): void {
    for (const guest of [...this.#guests]) guest.recheck();
  }

  /** Disconnects all clients because the member is closing. */
  close(): void {
    this.#forget();
    this.#options.service.platform.timers.cancel(this.#leaderless);
    for (const guest of [...this.#guests]) guest.dismiss("member-left", "the member has left", false);
  }

  /** Assigns the client id to the connection, and closes any older connection with the same id. */
  enter(guest: Guest, client: NodeId): void {
    this.#byClient.get(client)?.dismiss("moved", "the client has opened another connection", false);
    this.#byClient.set(client, guest);
  }

  leave(guest: Guest): void {
    if (!this.#guests.delete(guest)) return;
    this.room.leave(guest);
    this.numbers.forget(guest);
    const { client, session } = guest;
    if (client !== null && this.#byClient.get(client) === guest) this.#byClient.delete(client);
    if (session !== null && this.#bySession.get(session) === guest) this.#bySession.delete(session);
    for (const topic of guest.followed) this.#drop(topic, guest);
  }

  follow(topic: Topic, name: string, guest: Guest): string {
    const key = `${topic} ${name}`;
    const followers = this.#followers.get(key) ?? new Set();
    if (isWatch(key) && !followers.has(guest)) this.#options.counts.watching += 1;
    this.#followers.set(key, followers.add(guest));
    return key;
  }

  unfollow(topic: Topic, name: string, guest: Guest): string {
    const key = `${topic} ${name}`;
    this.#drop(key, guest);
    return key;
  }

  #drop(key: string, guest: Guest): void {
    const followers = this.#followers.get(key);
    if (followers?.delete(guest) === true && isWatch(key)) this.#options.counts.watching -= 1;
    if (followers?.size === 0) this.#followers.delete(key);
  }

  #answer({ client, type: _type, ...answer }: ClientAnswered): void {
    const guest = this.#byClient.get(client);
    if (guest === undefined) return;
    if (answer.session !== null && !answer.isOver) this.#know(guest, answer.session);
    guest.say({ type: "answered", ...answer });
  }

  #hear(event: Told): void {
    if (event.type === "opened") this.#opened(event);
    else if (event.type === "changed") this.#tell(event, `map ${event.map}`, []);
    else if (event.type === "granted" || event.type === "released" || event.type === "item")
      this.#tell(event, `grants ${event.name}`, [event.session]);
    else if (event.type === "passed") {
      const sessions = event.arrivals.map(({ session }) => session);
      this.#tell(event, null, sessions);
    } else if (event.type === "led") {
      this.#led(event.leader);
      this.#all({ type: "led", leader: event.leader, term: event.term });
    } else if (event.type === "restored") this.#all({ type: "restored", revision: event.revision });
    else if (event.type === "closed") this.close();
  }

  /**
   * Disconnects clients if no leader has been known for a while. This happens to a member that is disconnected, that
   * was removed without learning of it, or whose majority was lost.
   */
  #led(leader: NodeId | null): void {
    const { timers } = this.#options.service.platform;
    timers.cancel(this.#leaderless);
    this.#leaderless = null;
    if (leader !== null) {
      this.isLeaderless = false;
      this.numbers.ask();
    } else if (!this.isLeaderless) this.#leaderless = timers.after(LEADERLESS_MS, () => this.#letGo());
  }

  #letGo(): void {
    this.isLeaderless = true;
    for (const guest of [...this.#guests]) if (guest.hasGreeted) guest.dismissLeaderless();
  }

  #opened(event: ToldClient & { type: "opened" }): void {
    const guest = isClient(event.member) ? this.#byClient.get(event.member) : undefined;
    if (guest === undefined) return;
    this.#know(guest, event.session);
    guest.say({ type: "told", event });
  }

  #know(guest: Guest, session: SessionId): void {
    if (guest.session === session) return;
    if (guest.session !== null) this.#bySession.delete(guest.session);
    guest.session = session;
    this.#bySession.set(session, guest);
  }

  #tell(event: ToldClient, topic: string | null, sessions: readonly SessionId[]): void {
    const told = new Set(topic === null ? [] : this.#followers.get(topic));
    for (const session of sessions) {
      const guest = this.#bySession.get(session);
      if (guest !== undefined) told.add(guest);
    }
    if (told.size === 0) return;
    const text = JSON.stringify({ type: "told", event } satisfies MemberWord);
    for (const guest of told) guest.sayText(text);
  }

  #all(word: MemberWord): void {
    for (const guest of this.#guests) if (guest.isWelcome) guest.say(word);
  }
}

/** Whether the key denotes a watch. Excludes the endpoint map, which every client follows automatically. */
const isWatch = (key: string): boolean => key.startsWith("map ") && !key.startsWith(`map ${OWN_NAMES}`);

interface Around {
  readonly door: ClientDoor;
  readonly service: ServiceHost;
  readonly counts: ClientCounts;
  readonly flaw: string | null;
}

/**
 * Returns the message for a caller without a role.
 * @param flaw why the client's certificate was rejected, if it was
 */
export const unknownCaller = (flaw: string | null): string =>
  `expected a valid token or certificate${flaw === null ? "" : `: the certificate was rejected (${flaw})`}`;

/** A client's connection, as this member handles it. */
export class Guest implements Occupant {
  readonly #wire: ClientWire;
  readonly #roleOf: RoleOf;
  readonly #around: Around;
  client: NodeId | null = null;
  session: SessionId | null = null;
  readonly followed = new Set<string>();
  #role: Role | null = null;
  #token: string | null = null;
  #phase: "new" | "greeting" | "welcome" | "over" = "new";
  #reads = 0;

  constructor(wire: ClientWire, roleOf: RoleOf, around: Around) {
    this.#wire = wire;
    this.#roleOf = roleOf;
    this.#around = around;
  }

  /** Whether the client has sent `hello`, which proves that it has a role. */
  get hasGreeted(): boolean {
    return this.#phase === "greeting" || this.isWelcome;
  }

  get isWelcome(): boolean {
    return this.#phase === "welcome";
  }

  hear(text: string): void {
    if (this.#phase === "over") return;
    this.stir();
    const read = readWord(clientWordShape, text);
    if ("fault" in read) return this.dismiss("bad-message", read.fault, true);
    const { word } = read;
    if (word.type === "ping") return this.say({ type: "pong", id: word.id });
    if (word.type === "hello") return this.#greet(word);
    if (this.#phase !== "welcome") return this.dismiss("bad-message", "expected a hello first, then a welcome", true);
    if (word.type === "propose") this.#propose(word);
    else if (word.type === "query") void this.#read(word);
    else this.#follow(word);
  }

  /** Records a sign of life. */
  stir(): void {
    this.#around.door.room.note(this);
  }

  probe(): void {
    this.#wire.probe();
  }

  /** Called when the connection has ended. */
  left(): void {
    this.#phase = "over";
    this.#around.door.leave(this);
  }

  say(word: MemberWord): void {
    this.sayText(JSON.stringify(word));
  }

  sayText(text: string): void {
    if (this.#phase === "over") return;
    if (this.#wire.queuedBytes > MAX_QUEUED_BYTES) {
      this.#around.counts.dropped += 1;
      return this.#end();
    }
    for (const fragment of inFragments(text)) this.#wire.send(fragment);
  }

  /**
   * Disconnects the client.
   * @param isFinal whether other members would refuse the client too
   */
  dismiss(code: string, reason: string, isFinal: boolean): void {
    if (this.#phase === "over") return;
    this.#around.counts.refused += isFinal ? 1 : 0;
    this.say({ type: "farewell", code, reason, isFinal });
    this.#end();
  }

  refuse(code: string, reason: string): void {
    this.#around.counts.refused += 1;
    this.dismiss(code, reason, false);
  }

  recheck(): void {
    if (!this.hasGreeted || this.#roleOf(this.#token) === this.#role) return;
    this.dismiss("role-changed", "this client's role has changed", false);
  }

  /** Disconnects the client so that it tries a different member, which may know of a leader. */
  dismissLeaderless(): void {
    const { why } = this.#around.service;
    this.dismiss("no-leader", `the member does not know who leads the log${why === "" ? "" : `: ${why}`}`, false);
  }

  #end(): void {
    this.left();
    this.#wire.close();
  }

  #greet({ version, client, token }: ClientWord & { type: "hello" }): void {
    if (this.#phase !== "new") return this.dismiss("bad-message", "expected one hello, got a second", true);
    this.#phase = "greeting";
    this.#token = token;
    this.#role = this.#roleOf(token);
    if (this.#role === null) return this.dismiss("forbidden", unknownCaller(this.#around.flaw), true);
    if (version !== CLIENT_VERSION)
      return this.dismiss(
        "bad-version",
        `expected version ${CLIENT_VERSION} of the client protocol, got ${version}: use a client of this member's release`,
        true,
      );
    if (!this.#around.door.room.admit(this)) return;
    if (this.#around.door.isLeaderless) return this.dismissLeaderless();
    if (client !== null && !isClient(client)) return this.dismiss("bad-message", "expected a client number", true);
    // A client with the role `read` has no session. It gets no id and may not claim one.
    if (this.#role === "read") return this.welcome(FIRST_CLIENT);
    if (client !== null) return this.welcome(client);
    this.#around.door.numbers.wait(this);
  }

  /** Accepts the client under the given id. */
  welcome(client: NodeId): void {
    if (this.#phase !== "greeting") return;
    const { service, door } = this.#around;
    this.#phase = "welcome";
    if (client !== FIRST_CLIENT) {
      this.client = client;
      door.enter(this, client);
    }
    const { self: member, leader, term } = service;
    this.say({ type: "welcome", version: CLIENT_VERSION, member, client, role: this.#role ?? "read" });
    this.say({ type: "led", leader, term });
  }

  #propose({ sequence, operation }: ClientWord & { type: "propose" }): void {
    const { counts, service } = this.#around;
    if (this.#role === "read" || this.client === null)
      return this.dismiss("forbidden", "expected the role write for this request, got read", true);
    if (!isOfOwnSession(readProposal(operation)))
      return this.dismiss("bad-message", "expected operations of the client's own session", true);
    counts.commands += 1;
    service.propose({ client: this.client, sequence, operation });
  }

  async #read({ id, query }: { id: number; query: Query }): Promise<void> {
    const { counts, service } = this.#around;
    if (!mayBeRead(query))
      return this.say({
        type: "refused",
        id,
        code: "forbidden",
        reason: `expected no name that begins with ${OWN_NAMES}`,
      });
    if (this.#reads >= MAX_READS)
      return this.say({
        type: "refused",
        id,
        code: "overloaded",
        reason: `this client already has ${MAX_READS} pending reads`,
      });
    this.#reads += 1;
    counts.reads += 1;
    try {
      const { revision, answer } = (await service.query(query)) as { revision: Revision; answer: never };
      this.say({ type: "read", id, revision, answer });
    } catch (error) {
      const { code = "failed", message } = error as Error & { code?: string };
      this.say({ type: "refused", id, code, reason: message });
    } finally {
      this.#reads -= 1;
    }
  }

  #follow({ type, topic, name }: ClientWord & { type: "follow" | "unfollow" }): void {
    const { door } = this.#around;
    if (type === "unfollow") return void this.followed.delete(door.unfollow(topic, name, this));
    if (this.followed.size >= MAX_FOLLOWED)
      return this.dismiss("too-many", `expected a client to follow at most ${MAX_FOLLOWED} names`, true);
    this.followed.add(door.follow(topic, name, this));
  }
}

/**
 * Whether the client may make this proposal. Only the leader expires sessions, and only members change the member list
 * and the endpoint map. The TTL is bounded, because a crashed client keeps its locks for that long.
 */
const isOfOwnSession = (proposal: Proposal | null): boolean =>
  proposal?.type === "operations" &&
  proposal.operations.every(
    (operation) =>
      (operation.type !== "begin" || operation.ttlMs <= MAX_TTL_MS) &&
      !Object.hasOwn(memberOperationShapes, operation.type) &&
      isOfClients(operation),
  );
const MAX_TTL_MS = 60_000;
